"""`pillarbox suppressions`."""
