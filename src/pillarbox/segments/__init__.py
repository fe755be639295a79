"""Segments: lists of contacts, also under their older name, audiences."""
