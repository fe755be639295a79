"""SPF, DKIM and DMARC: signing, verifying, the Authentication-Results field.

Begin with `evaluate.py` (all three for one received mail) and `dkim.py` (signing).
"""
