"""Finding emails by people, words, state, time and origin (docs/decisions/0049, 0177).

Begin with `filters.py`, which says what can be asked for, and `find.py`, which answers. `blocks` describes
a thousand emails of a team at a time by a Bloom filter. So a question reads only the blocks that may have
what it looks for, and the newest emails, which are in no block yet. Where a state is asked for that few
emails have, the history names the candidates. What is found is always compared with the rows themselves, so
a filter never shows an email that does not fit.

`suppression_causes` finds the email that put an address on the suppression list.
"""
