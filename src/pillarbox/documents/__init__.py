"""Documents: what people write in the editor, and the mail that is made of it (docs/decisions/0183).

Begin with `blocks.py` (what a document holds) and `rendering.py` (what is made of it). `source.py` says how a
document is kept beside its HTML, `theme.py` how a team's mail looks.
"""
