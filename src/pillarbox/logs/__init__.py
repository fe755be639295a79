"""The log of requests: what was asked of the API in a team's name, and what it was answered.

A row is written once and never changed; it goes when its time is over. The row of a write is in the same
commit as the write, so there is never one without the other; rows of reads may be lost. No secret is in
it: what an answer shows once, signed links and attachments are masked before anything is written.

Begin with `writing.py` and `entries.py` (what a row holds).
"""
