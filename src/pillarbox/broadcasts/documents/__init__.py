"""Documents of broadcasts: what their HTML was made of, kept beside it (docs/decisions/0183)."""
