"""Screens of domains. Begin with `domain_list.py` and `domain_page.py`."""
