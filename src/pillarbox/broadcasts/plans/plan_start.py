"""The start of a plan, in the transaction that writes its recipients."""

from __future__ import annotations

from math import ceil
from uuid import UUID

from pillarbox.broadcasts.content import BroadcastContent
from pillarbox.broadcasts.plans import queries
from pillarbox.broadcasts.plans.plan import BroadcastPlan
from pillarbox.broadcasts.plans.queries import SampleSizes
from pillarbox.emails.broadcast_copies import shared_content
from pillarbox.emails.broadcast_copies.shared_content import SharedContent
from pillarbox.kernel.ids import Ids, Stamp
from pillarbox.kernel.postgres.database import TeamDb


async def begin(
    db: TeamDb,
    ids: Ids,
    broadcast_id: UUID,
    content: BroadcastContent,
    plan: BroadcastPlan,
    *,
    recipients: int,
    seconds: float,
) -> None:
    """Choose who belongs to the canary and to the test, and freeze the contents of the variants."""
    sizes = sizes_of(plan, recipients)
    if sizes.canary or sizes.test:
        await queries.sample(db, broadcast_id, sizes, ids.new(), seconds)
    for variant in plan.variants:
        stamp = ids.stamp()
        await shared_content.insert(db, frozen(stamp, variant.content(content)))
        await queries.give_content(db, broadcast_id, variant.number, stamp.id)
    await queries.begin(db, broadcast_id, plan.settings.first_stage)


def sizes_of(plan: BroadcastPlan, recipients: int) -> SampleSizes:
    """Return how many of so many recipients are in the canary and in the test."""
    canary, test = plan.settings.canary, plan.settings.test
    fewest = min(recipients, len(plan.variants))
    return SampleSizes(
        canary=0 if canary is None else _share(canary.percent, recipients),
        test=0 if test is None else max(_share(test.percent, recipients), fewest),
        variants=len(plan.variants),
    )


def frozen(stamp: Stamp, content: BroadcastContent) -> SharedContent:
    """Return the content that copies share from now on."""
    return SharedContent(
        id=stamp.id,
        created_at=stamp.at,
        sender=content.sender,
        subject=content.subject,
        reply_to=content.reply_to,
        preview_text=content.preview_text,
        html=content.html,
        text=content.text,
    )


def _share(percent: int, recipients: int) -> int:
    return ceil(recipients * percent / 100)
