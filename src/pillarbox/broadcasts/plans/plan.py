"""A plan: when and how fast copies are made, and which variants are tried (broadcasts.md
section 11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from hashlib import sha256
from typing import Final, Literal, TypeAlias
from zoneinfo import ZoneInfo, available_timezones

import msgspec

from pillarbox.broadcasts.content import BroadcastContent, hindrance

Stage: TypeAlias = Literal["canary", "checking", "testing", "deciding", "rest"]
WinnerBy: TypeAlias = Literal["opens", "clicks"]

CANARY: Final = 1
TEST: Final = 2
WAVES: Final[dict[str, int]] = {"canary": CANARY, "testing": TEST}
"""The last wave of which copies are made in a stage; in `rest` all are."""

MINUTE: Final = timedelta(minutes=1)
HOUR: Final = timedelta(hours=1)
PARTS: Final = 60
"""So many portions an hour has at most."""

REVISION: Final = 32
"""Characters of a revision."""

NO_ZONES: Final = frozenset({"localtime", "Factory"})
VARIANT_NAMES: Final = "ABCD"


class PlanCanary(msgspec.Struct, frozen=True, kw_only=True):
    """A share of the recipients that gets it first, and how long its figures are watched before the others
    do."""

    percent: int
    minutes: int


class SendingHours(msgspec.Struct, frozen=True, kw_only=True):
    """The hours of a day in which copies are made: from `start` up to `end`, which may be on the next day.
    `property` names the property of contacts that has their zone; `time_zone` is that of all others."""

    start: int
    end: int
    time_zone: str
    property: str | None = None

    def is_open(self, zone: str | None, now: datetime) -> bool:
        """Return whether copies are made now for a contact of this zone."""
        hour = now.astimezone(_place(zone_of(zone) or self.time_zone)).hour
        if self.start < self.end:
            return self.start <= hour < self.end
        return hour >= self.start or hour < self.end


class PlanTest(msgspec.Struct, frozen=True, kw_only=True):
    """An A/B test: the share of the recipients that get one of the variants each, and when and by what the
    variant is chosen that the others get."""

    percent: int
    minutes: int
    winner_by: WinnerBy


class SendingPlan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A plan without its variants; stored as JSON."""

    canary: PlanCanary | None = None
    per_hour: int | None = None
    hours: SendingHours | None = None
    test: PlanTest | None = None

    @property
    def first_stage(self) -> Stage:
        if self.canary is not None:
            return "canary"
        return self.stage_after_canary

    @property
    def stage_after_canary(self) -> Stage:
        return "rest" if self.test is None else "testing"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanVariant:
    """One variant of the content; what is None is the broadcast's. Bodies go together: where one is given,
    none of the broadcast's is used."""

    number: int
    subject: str | None = None
    preview_text: str | None = None
    html: str | None = None
    text: str | None = None

    def content(self, content: BroadcastContent) -> BroadcastContent:
        """Return the content that recipients of this variant get."""
        made = replace(
            content,
            subject=content.subject if self.subject is None else self.subject,
            preview_text=content.preview_text if self.preview_text is None else self.preview_text,
        )
        if self.html is None and self.text is None:
            return made
        return replace(made, html=self.html, text=self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class BroadcastPlan:
    """The plan of a broadcast, with its variants in the order of their numbers."""

    settings: SendingPlan
    variants: Sequence[PlanVariant] = ()

    def hindrance(self, content: BroadcastContent) -> str | None:
        """Return why one of the variants cannot be sent; None where all can."""
        for variant in self.variants:
            if (reason := hindrance(variant.content(content))) is not None:
                return f"Variant {VARIANT_NAMES[variant.number - 1]}: {reason}"
        return None


def revision_of(plan: BroadcastPlan | None) -> str:
    """Return a text that stands for all that can be changed in a plan."""
    parts = None if plan is None else (plan.settings, [astuple(one) for one in plan.variants])
    return sha256(msgspec.json.encode(parts)).hexdigest()[:REVISION]


def copies_at_once(per_hour: int, limit: int) -> int:
    """Return how many copies may be made at once."""
    return min(limit, max(1, per_hour // PARTS))


def gap_after(per_hour: int, copies: int) -> timedelta:
    """Return how long no more are made after so many copies.

    In any hour there are at most `per_hour`: the portions but the last one are fewer than 59 of 60 parts,
    and the last one has at most one part (`copies_at_once`).
    """
    return HOUR * copies * PARTS / (per_hour * (PARTS - 1))


def next_quarter(now: datetime) -> timedelta:
    """Return how long it is until the next quarter of an hour, when hours begin and end somewhere."""
    quarter = timedelta(minutes=15)
    return quarter - (now - now.replace(minute=0, second=0, microsecond=0)) % quarter


@cache
def _zones() -> dict[str, str]:
    return {name.lower(): name for name in available_timezones() - NO_ZONES}


@cache
def _place(name: str) -> ZoneInfo:
    """Return a zone, which is read from its file once."""
    return ZoneInfo(name)


def zone_of(name: str | None) -> str | None:
    """Return the IANA name of a zone as it is written there; None where there is none."""
    return None if name is None else _zones().get(name.lower())


encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(SendingPlan).decode
