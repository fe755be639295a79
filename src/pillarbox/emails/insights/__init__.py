"""Facts about a sent email beside its fate: what may be held against it, and where it comes from."""
