"""Messages (RFC 5322, MIME): composing and parsing.

Begin with `compose.py` and `parse.py`.
"""
