"""The timeline: what became of every email.

This slice alone decides the fate of an email: `Timeline.record` in general, `settled` for first events in one
statement, `opened` and `opened_beside` for new emails, `release` and `cancel` for scheduled ones. In the
caller's transaction they append timeline rows, move recipients from state to state, set `emails.last_event`,
add metric increments and hand the events to webhooks. So these can never disagree.

States of a recipient (emails.md section 6): queued, scheduled, sent, delivery_delayed, delivered,
opened, clicked, bounced, complained, failed, suppressed, canceled. `rules` says which event may follow
which state; an event that may not follow is late bookkeeping and changes nothing.

Begin with `record.py` and `rules.py`.
"""
