"""Templates: content with variables, in versions, for mail that is sent again and again (templates.md).

A template has at most one published version, which mail is made of, and at most one draft that is newer. A
published version never changes: what is changed afterwards goes into a draft until it is published. Name and
alias have no versions. `draft` is the status before the first publication, `published` for ever after.

Begin with `routes.py`, `changes.py` (what a change does) and `mail.py` (mail that is made of a template).
"""
