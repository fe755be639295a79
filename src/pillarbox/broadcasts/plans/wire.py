"""Shapes of plans and of their progress (broadcasts.md section 11); field order is the contract's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal
from uuid import UUID

from msgspec import Meta, Struct

from pillarbox.broadcasts import content
from pillarbox.broadcasts.content import MOST_PREVIEW, MOST_SUBJECT
from pillarbox.broadcasts.plans.plan import (
    REVISION,
    VARIANT_NAMES,
    BroadcastPlan,
    PlanCanary,
    PlanTest,
    PlanVariant,
    SendingHours,
    SendingPlan,
    WinnerBy,
    revision_of,
    zone_of,
)
from pillarbox.broadcasts.plans.plan import Stage as PlanStage
from pillarbox.broadcasts.statuses import Status
from pillarbox.kernel.http.schemas import shown_as
from pillarbox.kernel.wire.fields import read_by
from pillarbox.kernel.wire.instants import DatabaseTime
from pillarbox.kernel.wire.problems import InvalidField

FEWEST_VARIANTS: Final = 2
MOST_VARIANTS: Final = len(VARIANT_NAMES)
MOST_MINUTES: Final = 7 * 24 * 60
MOST_PER_HOUR: Final = 100_000_000
MOST_REASON: Final = 200


def _zone(value: object, path: str) -> str:
    name = zone_of(value) if isinstance(value, str) else None
    if name is None:
        raise InvalidField(path, "It is not an IANA time zone name.")
    return name


Percent = Annotated[int, Meta(ge=1, le=100)]
CanaryPercent = Annotated[int, Meta(ge=1, le=50)]
Minutes = Annotated[int, Meta(ge=1, le=MOST_MINUTES)]
PerHour = Annotated[int, Meta(ge=1, le=MOST_PER_HOUR)]
Zone = Annotated[str, read_by(_zone)]
ZoneProperty = Annotated[str, Meta(min_length=1, max_length=50)]
VariantSubject = Annotated[str, Meta(max_length=MOST_SUBJECT), read_by(content.subject)]
VariantPreview = Annotated[str, Meta(max_length=MOST_PREVIEW), read_by(content.preview)]
VariantBody = Annotated[str, read_by(content.body)]
VariantNumber = Annotated[int, Meta(ge=1, le=MOST_VARIANTS)]
Reason = Annotated[str, Meta(min_length=1, max_length=MOST_REASON)]
ShownStage = Annotated[str, shown_as(PlanStage)]


class NewPlanCanary(Struct, kw_only=True):
    percent: CanaryPercent
    minutes: Minutes


class NewPlanHours(Struct, kw_only=True):
    """The hours from `start` up to `end`, in the zone of the contact's `property` where it names one."""

    start: Annotated[int, Meta(ge=0, le=23)]
    end: Annotated[int, Meta(ge=1, le=24)]
    time_zone: Zone
    property: ZoneProperty | None = None


class NewPlanVariant(Struct, kw_only=True):
    """A variant: what is absent is the broadcast's; bodies go together."""

    subject: VariantSubject | None = None
    preview_text: VariantPreview | None = None
    html: VariantBody | None = None
    text: VariantBody | None = None


class NewPlanTest(Struct, kw_only=True):
    variants: Annotated[list[NewPlanVariant], Meta(min_length=FEWEST_VARIANTS, max_length=MOST_VARIANTS)]
    percent: Percent
    winner_by: WinnerBy
    minutes: Minutes


class NewPlan(Struct, kw_only=True):
    """The pace of a broadcast, and its A/B test. What is absent is not wanted."""

    canary: NewPlanCanary | None = None
    per_hour: PerHour | None = None
    hours: NewPlanHours | None = None
    ab_test: NewPlanTest | None = None

    def broadcast_plan(self) -> BroadcastPlan | None:
        """Return the plan, None where nothing is wanted; raise a 422 where its parts do not fit."""
        canary, hours, test = self.canary, self.hours, self.ab_test
        if hours is not None and hours.start == hours.end:
            raise InvalidField("hours.end", "It must not be what `start` is.")
        if canary is not None and test is not None and canary.percent > test.percent:
            raise InvalidField("canary.percent", "It must not be larger than that of the A/B test.")
        if canary is None and self.per_hour is None and hours is None and test is None:
            return None
        settings = SendingPlan(
            canary=None if canary is None else PlanCanary(percent=canary.percent, minutes=canary.minutes),
            per_hour=self.per_hour,
            hours=None if hours is None else _hours(hours),
            test=None if test is None else _test(test),
        )
        return BroadcastPlan(settings=settings, variants=[] if test is None else _variants(test.variants))


class PutPlan(NewPlan, kw_only=True):
    """A plan; with a revision, in the place of the one that has it alone."""

    revision: Annotated[str, Meta(max_length=REVISION)] | None = None


class PauseBroadcast(Struct, kw_only=True):
    reason: Reason | None = None


class ChosenVariant(Struct, kw_only=True):
    variant: VariantNumber


class ShownCanary(Struct, kw_only=True):
    percent: int
    minutes: int


class ShownHours(Struct, kw_only=True):
    start: int
    end: int
    time_zone: str
    property: str | None


class ShownVariant(Struct, kw_only=True):
    variant: int
    subject: str | None
    preview_text: str | None
    html: str | None
    text: str | None


class ShownTest(Struct, kw_only=True):
    variants: list[ShownVariant]
    percent: int
    winner_by: str
    minutes: int


class ShownPlan(Struct, kw_only=True):
    object: Literal["broadcast_plan"]
    broadcast_id: UUID
    canary: ShownCanary | None
    per_hour: int | None
    hours: ShownHours | None
    ab_test: ShownTest | None
    revision: str


class ShownVariantCounts(Struct, kw_only=True):
    """The recipients of the test alone; opens and clicks are those of people."""

    variant: int
    copies: int
    sent: int
    opened: int
    clicked: int
    opened_by_machine: int


class BroadcastProgress(Struct, kw_only=True):
    object: Literal["broadcast_progress"]
    broadcast_id: UUID
    status: Annotated[str, shown_as(Status)]
    stage: ShownStage | None
    stage_until: DatabaseTime | None
    next_at: DatabaseTime | None
    paused_at: DatabaseTime | None
    reason: str | None
    recipients: int | None
    copies: int
    sent: int
    delivered: int
    bounced: int
    complained: int
    suppressed: int
    failed: int
    opened: int
    clicked: int
    unsubscribed: int
    winner: int | None
    variants: list[ShownVariantCounts]


class BroadcastAudience(Struct, kw_only=True):
    """The number of contacts that get the broadcast if it is sent now, and of those who do not; each is
    counted once."""

    object: Literal["broadcast_audience"]
    broadcast_id: UUID
    members: int
    unsubscribed: int
    topic_opt_out: int
    suppressed: int
    recipients: int


def shown_plan(broadcast_id: UUID, plan: BroadcastPlan | None) -> ShownPlan:
    """Return the plan as it is shown; of a broadcast without one all is null."""
    settings = SendingPlan() if plan is None else plan.settings
    canary, hours, test = settings.canary, settings.hours, settings.test
    variants = [] if plan is None else plan.variants
    return ShownPlan(
        object="broadcast_plan",
        broadcast_id=broadcast_id,
        canary=None if canary is None else ShownCanary(percent=canary.percent, minutes=canary.minutes),
        per_hour=settings.per_hour,
        hours=None if hours is None else _shown_hours(hours),
        ab_test=None if test is None else _shown_test(test, variants),
        revision=revision_of(plan),
    )


def _shown_hours(hours: SendingHours) -> ShownHours:
    return ShownHours(start=hours.start, end=hours.end, time_zone=hours.time_zone, property=hours.property)


def _shown_test(test: PlanTest, variants: Sequence[PlanVariant]) -> ShownTest:
    return ShownTest(
        variants=[_shown_variant(one) for one in variants],
        percent=test.percent,
        winner_by=test.winner_by,
        minutes=test.minutes,
    )


def _shown_variant(variant: PlanVariant) -> ShownVariant:
    return ShownVariant(
        variant=variant.number,
        subject=variant.subject,
        preview_text=variant.preview_text,
        html=variant.html,
        text=variant.text,
    )


def _hours(hours: NewPlanHours) -> SendingHours:
    return SendingHours(start=hours.start, end=hours.end, time_zone=hours.time_zone, property=hours.property)


def _test(test: NewPlanTest) -> PlanTest:
    return PlanTest(percent=test.percent, minutes=test.minutes, winner_by=test.winner_by)


def _variants(variants: Sequence[NewPlanVariant]) -> list[PlanVariant]:
    """Return the variants; raise a 422 for bodies that are too large, as of a broadcast."""
    for one in variants:
        content.refuse_too_large(one.html, one.text)
    return [
        PlanVariant(
            number=place + 1,
            subject=one.subject,
            preview_text=one.preview_text,
            html=one.html or None,
            text=one.text if one.html or one.text else None,
        )
        for place, one in enumerate(variants)
    ]
