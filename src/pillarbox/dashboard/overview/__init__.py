"""The first screen: what the team sent lately, and what to do next."""
