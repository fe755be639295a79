"""Which team a thing means that arrives without one: an API key's hash, a domain's name.

Small global tables. Every row points at a row of a team and is written in the same transaction as it.
"""
