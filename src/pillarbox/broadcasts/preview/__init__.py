"""Previews of a broadcast: the mail as a contact would get it now, shown or sent to somebody who tries it out
(docs/decisions/0076).

Begin with `composing.py`.
"""
