"""Screens of imports of contacts: the list, the file, the mapping of its columns, and one import."""
