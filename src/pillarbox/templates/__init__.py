"""Templates: content with variables, in versions, for mail that is sent again and again (templates.md)."""
