"""What the slice holds about one person. Begin with `personal_data.py`."""
