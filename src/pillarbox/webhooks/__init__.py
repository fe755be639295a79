"""Webhooks (webhooks.md): who wants which events, what is owed to them, and what became of it.

An event is written in the transaction of the change that it tells about, once for every enabled webhook
of the team that wants its kind (`publish`): the delivery row is the only thing that is written then. The
body is made once, when the event happens or when the first delivery of it is claimed, and never changes.

A delivery is pending, then attempting, and ends as success or failed; then its row leaves the queue and
an outcome takes its place. A replay is a row of its own beside it and leaves its schedule alone.
Disabling a webhook raises its `epoch`: every delivery that was written before is dead from that commit
on, shows as failed, and is taken away when it is next met in the queue. Enabling it again brings none of
them back. Deleting one makes all that it had unreachable at once; the rows are removed in the background.
"""
