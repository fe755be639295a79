"""Commands under `pillarbox domains`, and how others name a domain."""
