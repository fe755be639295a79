"""Segments under their older name (audiences.md): the same rows, the same ids."""
