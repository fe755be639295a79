"""The timeline: what became of every email.

`Timeline.record` is the only code that writes the fate of an email. In the caller's transaction it appends
timeline rows, moves recipients from state to state, sets `emails.last_event`, adds metric increments and
hands the events to webhooks. So these can never disagree.

States of a recipient (emails.md section 6): queued, scheduled, sent, delivery_delayed, delivered,
opened, clicked, bounced, complained, failed, suppressed, canceled. `rules` says which event may follow
which state; an event that may not follow is late bookkeeping and changes nothing.

Begin with `record.py` and `rules.py`.
"""
