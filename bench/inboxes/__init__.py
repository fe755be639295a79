"""Measurements of inboxes, one module for each part."""
