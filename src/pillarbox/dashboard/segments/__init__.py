"""Screens of segments: the list, one segment, segments by conditions."""
