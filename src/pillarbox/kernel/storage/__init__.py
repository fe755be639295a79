"""Bytes outside the database: the blob store, the data folder, space on the disk.

Begin with `blobs.py`.
"""
