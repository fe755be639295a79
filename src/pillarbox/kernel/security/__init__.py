"""Who is calling, and what is secret: credentials, tokens, sealed values, certificates, rate limits.

Begin with `authentication.py` and `secrets.py`.
"""
