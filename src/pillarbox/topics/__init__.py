"""Topics: what contacts choose to get or not to get."""
