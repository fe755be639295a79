"""HTML of mails as text, within limits, with its embedded parts.

Begin with `plain_text.py`.
"""
