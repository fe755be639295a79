"""Segments under their older name (contacts.md section 5): the same rows, the same ids."""
