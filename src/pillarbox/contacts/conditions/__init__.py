"""Conditions of contacts (segments.md section 3): the language of filters and of segments by conditions.

Begin with `language.py` (the types), then `parsing.py` (from JSON), `references.py` (whether what a
condition names is there), `compiling.py` (to SQL) and `queries.py` (who fits).
"""
