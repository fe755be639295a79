"""The page on which somebody lets a program act, or does not (oauth.md 5.1)."""
