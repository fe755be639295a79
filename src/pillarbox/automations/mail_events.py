"""Which teams need the events of their mail: those whose automations wait for them (automations.md 3.5)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import asyncpg

from pillarbox.automations import mail_event_queries as queries
from pillarbox.automations.graphs.graph import MAIL_EVENTS, Graph, WaitForEvent
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.webhooks.listening.subscriptions import EventSubscription

NAME: Final = "automations"
KEPT: Final = timedelta(days=1)
"""How long a subscription stays that nobody needs; what has begun to need it meanwhile renews it."""


async def subscribe(db: TeamDb, subscription: EventSubscription, graph: Graph, now: datetime) -> None:
    """Subscribe the team to the events of mail that the graph waits for, if there are any."""
    kinds = {
        MAIL_EVENTS[step.config.event_name]
        for step in graph.steps
        if isinstance(step.config, WaitForEvent) and step.config.is_of_mail
    }
    if kinds:
        await subscription.subscribe(db, sorted(kinds), now)


async def unsubscribe_unneeded(pool: asyncpg.Pool, subscription: EventSubscription, now: datetime) -> int:
    """End the subscriptions of teams in which nothing waits for mail, and nothing will; return how many."""
    ended = 0
    for team_id in await subscription.subscribed_teams(pool):
        db = TeamDb(pool, team_id)
        if not await queries.is_needed(db):
            ended += await subscription.unsubscribe(db, now - KEPT)
    return ended
