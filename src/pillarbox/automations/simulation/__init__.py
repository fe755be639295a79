"""A run that is only thought of: the graph of an automation for one contact, with a clock that jumps."""
