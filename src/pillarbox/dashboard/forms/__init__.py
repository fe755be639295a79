"""Screens of sign-up forms: the list, the editor with its preview, and one form with its sign-ups."""
