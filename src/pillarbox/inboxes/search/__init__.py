"""Finding messages of an inbox by their words (inboxes.md 5.2). Begin with `searched_text.py`."""
