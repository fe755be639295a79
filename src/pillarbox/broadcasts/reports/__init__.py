"""Reports of a broadcast: who got it, opened it, left by it, and which links were followed (broadcasts.md
section 4).

Nothing is stored for them. The metrics say how many recipients each quarter hour added to a list. So the
place of a row is known without reading the rows before it, and a page reads the history of a few moments
(docs/decisions/0076).

Begin with `positions.py`.
"""
