"""Screens of one contact. Begin with `contact_page.py`; `contact_timeline.py` says what happened to it."""
