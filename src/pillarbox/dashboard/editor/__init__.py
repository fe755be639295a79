"""Screens of templates, and the editor of documents that drafts of broadcasts have as well.

Begin with `edited_thing.py` (what is edited, and where) and `editor_page.py` (how it is drawn and stored).
"""
