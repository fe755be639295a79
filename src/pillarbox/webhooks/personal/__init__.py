"""Personal data in webhooks, erased. Begin with `personal_data.py`."""
