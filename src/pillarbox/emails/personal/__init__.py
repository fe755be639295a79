"""Personal data in emails, read for its file and erased. Begin with `personal_data.py`."""
