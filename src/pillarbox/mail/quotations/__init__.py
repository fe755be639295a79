"""Finds the quoted history and the signature of a mail, as mail programs write them."""
