"""Finding emails by address, words of the subject, state, domain and time (docs/decisions/0049).

`filters` says what can be asked for, `find` answers. `blocks` describes a thousand emails of a team at a time
by a Bloom filter. So a question reads only the blocks that may have what it looks for, and the newest emails,
which are in no block yet. Where a state is asked for that few emails have, the history names the candidates.
What is found is always compared with the rows themselves, so a filter never shows an email that does not fit.
"""
