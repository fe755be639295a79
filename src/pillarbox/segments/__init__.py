"""Segments (segments.md): lists of contacts, also under their older name, `audiences`.

A segment is there, or it is gone with the answer to its deletion. Nothing shows a member whose segment is
gone; a job, written in the transaction of the deletion, removes such members. Contacts write the members
that are added and taken out, with their events (`pillarbox.contacts.store`).

Begin with `changes.py`.
"""
