"""Callers and secrets: credentials, tokens, sealed values, certificates, rate limits.

Begin with `authentication.py` and `secrets.py`.
"""
