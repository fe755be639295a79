"""Personal data in received mail. Begin with `personal_data.py`."""
