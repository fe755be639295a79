"""Checks of the content of a broadcast, before it is sent."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from pillarbox.broadcasts.content import BroadcastContent
from pillarbox.broadcasts.plans import queries as plan_queries
from pillarbox.broadcasts.plans.plan import VARIANT_NAMES
from pillarbox.broadcasts.store import found
from pillarbox.domains.senders import Senders
from pillarbox.emails.insights.queries import InspectedEmail
from pillarbox.emails.insights.reading import read
from pillarbox.emails.insights.rules import Insight, judged
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.process.offload import in_thread_if_large
from pillarbox.mail.html.plain_text import text_of
from pillarbox.mail.placeholders.contact_values import is_link
from pillarbox.mail.placeholders.parsing import parse

NO_LINK: Final = Insight("unsubscribe_link", "warning", "No link in the text leads to unsubscribing.")


async def checks(db: TeamDb, senders: Senders, broadcast_id: UUID) -> list[tuple[str, Insight]]:
    """Return what needs attention in the variants, with the letters of the variants, "" for all of
    them; 404 where there is no such broadcast."""
    content = (await found(db, broadcast_id)).content
    plan = await plan_queries.get(db, broadcast_id)
    domain = await senders.find(db.team_id, content.domain)
    signs_for = domain.name if domain is not None and domain.may_send else None
    parts = [("", content)]
    if plan is not None and plan.variants:
        parts = [(VARIANT_NAMES[one.number - 1], one.content(content)) for one in plan.variants]
    noted: dict[Insight, str] = {}
    for name, part in parts:
        for insight in await in_thread_if_large(len(part.html or ""), _judged, part, broadcast_id, signs_for):
            noted[insight] = noted.get(insight, "") + name
    return [("" if len(names) == len(parts) else names, insight) for insight, names in noted.items()]


def _judged(content: BroadcastContent, broadcast_id: UUID, signs_for: str | None) -> list[Insight]:
    stored = InspectedEmail(
        sender=content.sender,
        domain_name=content.domain,
        html=content.html,
        text=content.text if content.text is not None else text_of(content.html or ""),
        headers=None,
        topic_id=content.topic_id,
        broadcast_id=broadcast_id,
        recipients=1,
    )
    noted = [insight for insight in judged(read(stored, signs_for)) if insight.level != "ok"]
    sources = [part for part in (content.html, content.text) if part]
    if not any(is_link(placeholder.name) for part in sources for placeholder in parse(part).placeholders):
        noted.append(NO_LINK)
    return noted
