"""Waits for what happens to mail, when they begin: what has happened already counts (automations.md 3.5).

What happens later comes through the team's subscription. A wait that begins looks for what has happened to
the last mail of its run, in the transaction that stores the wait, and writes that for the subscription too.
So it ends the wait by the same way. What is committed after that look is distributed behind the wait: who
distributes an event awaits the step that is being carried out for its contact (`receiving.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox.automations import mail_event_queries
from pillarbox.automations.execution.walks import Walk
from pillarbox.automations.graphs.graph import MAIL_EVENTS
from pillarbox.automations.mail_events import NAME
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.timeline import history
from pillarbox.webhooks.listening.subscriptions import PastEvent, offer


async def offer_past(db: TeamDb, walks: Sequence[Walk]) -> None:
    """Offer to waits that begin here what has happened to the last mail of their runs."""
    begun = {
        (walk.run.id, work.event_name)
        for walk in walks
        if not walk.is_over
        for work in walk.ready.values()
        if work.event_name in MAIL_EVENTS
    }
    if not begun:
        return
    run_ids = sorted({run_id for run_id, _ in begun})
    mail = {sent.run_id: sent.email_id for sent in await mail_event_queries.last_mail(db, run_ids)}
    sought = [
        (mail[run_id], MAIL_EVENTS[name].removeprefix("email."))
        for run_id, name in sorted(begun)
        if name is not None and run_id in mail
    ]
    if sought:
        events = await history.first_of(db, sought)
        past = [
            PastEvent(
                id=event.id,
                kind=f"email.{event.kind}",
                at=event.at,
                subject_id=event.email_id,
                position=event.position,
                detail=event.detail,
            )
            for event in events
        ]
        await offer(db, NAME, past)
