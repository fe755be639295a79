"""Webhooks (webhooks.md): who wants which events, what is queued for them, and what became of it.

An event is written in the transaction of the change that it describes, once for every enabled webhook of the
team that wants its kind (`publish`): delivery rows are written then, with the body where the event brings its
data. The body is made once, when the event happens or when the first delivery of it is claimed, and never
changes (`bodies`).

A delivery is pending, then attempting, and ends as success or failed: its row leaves the queue and an
outcome is written in the same transaction. A replay is a row of its own beside it: it has one
attempt, leaves the schedule alone, writes no outcome, and turns an outcome `failed` into `success`.

Disabling a webhook raises its `epoch`. Every delivery with an earlier epoch is void from that commit on and
shows as failed; whoever meets it in the queue takes it away, and gives a scheduled one the outcome `failed`.
What its body is made of is kept, so that it can still be seen and replayed. An attempt that was on the wire
may still succeed; it is never put off to another. Enabling the webhook again brings nothing back. Deleting it
makes all that it had unreachable at once; its rows are not due any more and are removed in the background.

Results of attempts also go to `health.record`, in the transaction that settles them.

Received mail for no inbox inserts its rows itself (`STORE` in `receiving/store_queries.py`).

Begin with `publish.py` (an event becomes deliveries) and `dispatch/engine.py` (deliveries are posted).
"""
