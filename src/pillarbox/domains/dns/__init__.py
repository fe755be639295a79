"""DNS of a domain: the records it needs, asking for them, comparing, advice.

Begin with `records.py` and `matching.py`.
"""
