"""A broadcast that has begun: how far it is, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from pillarbox.broadcasts.plans.plan import VARIANT_NAMES
from pillarbox.broadcasts.reports.breakdown import by_provider, people_and_programs
from pillarbox.broadcasts.reports.summaries import digest_of_broadcasts, summaries
from pillarbox.dashboard.broadcasts.broadcast_list import COUNTED, HERE, choices_of, name_of, rates_of
from pillarbox.dashboard.frame import charts
from pillarbox.dashboard.frame.metrics_periods import metric_range
from pillarbox.dashboard.frame.paging import list_page
from pillarbox.dashboard.frame.times import instant_of, percent, period_text
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.overview.domain_reputation import BOUNCE_LIMIT, COMPLAINT_LIMIT
from pillarbox.dashboard.texts import t
from pillarbox.dashboard.texts.number_format import number
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import Problem

VIEWS: Final = ("report", "recipients", "links", "parts", "mail")
TYPES: Final = (
    "sent",
    "delivered",
    "opened",
    "clicked",
    "bounced",
    "complained",
    "unsubscribed",
    "suppressed",
)
FUNNEL: Final = ("copies", "sent", "delivered", "opened", "clicked")
EARLIER: Final = 5
"""Broadcasts that a report is compared with."""

SHORT: Final = timedelta(days=3)
"""Up to this length a chart has a point for each hour."""

LONGEST: Final = timedelta(days=60)
MOST_LINKS: Final = 50


class ReportCount(NamedTuple):
    """A figure of the report with its rate."""

    name: str
    amount: str
    note: str
    tone: str = ""


class ComparedRow(NamedTuple):
    """A broadcast beside others, with its rates as texts."""

    id: str
    name: str
    sent: str
    delivered: str
    opened: str
    clicked: str
    bounced: str
    is_this: bool


class VariantRow(NamedTuple):
    """A variant with its rates as texts."""

    number: int
    letter: str
    subject: str
    copies: str
    opened: str
    clicked: str
    by_machine: str
    is_winner: bool


async def report_page(
    visit: Visit, broadcast: Mapping[str, Any], *, status: int, problem: str | None
) -> Reply[Html]:
    """Show one of the views of a broadcast that has begun."""
    view = visit.request.query.text("view") or "report"
    view = view if view in VIEWS else "report"
    here = f"{HERE}/{broadcast['id']}"
    broadcast_id = UUID(broadcast["id"])
    digest = await digest_of_broadcasts(visit.db, broadcast_id)
    progress = await visit.get(f"/broadcasts/{broadcast['id']}/progress", shown=view == "report")
    plan = await visit.get(f"/broadcasts/{broadcast['id']}/plan", shown=False)
    values: dict[str, Any] = {}
    try:
        match view:
            case "report":
                values = await _report(visit, broadcast, progress)
            case "recipients":
                values = await _recipients(visit, here)
            case "links":
                values = {"links": await links_of(visit, broadcast["id"])}
            case "parts":
                values = {
                    "providers": await by_provider(visit.db, broadcast_id),
                    "people": await people_and_programs(visit.db, broadcast_id),
                }
    except Problem as refused:
        if problem is None:
            status, problem = refused.status, refused.message
    return await visit.draw(
        "broadcasts/report.html",
        status=status,
        problem=problem,
        broadcast=broadcast,
        name=name_of(broadcast["name"], broadcast["subject"]),
        here=here,
        view=view,
        tabs_of=[(f"{here}?view={one}", t(f"broadcast.view.{one}"), None) for one in VIEWS],
        progress=progress,
        condition=condition_of(progress),
        share=share_done(progress),
        left=time_left(plan, progress),
        digest=digest,
        variants=variants_of(broadcast, plan, progress),
        segments=await choices_of(visit, "/segments"),
        types={name: t(f"broadcast.type.{name}") for name in TYPES},
        percent=percent,
        **values,
    )


def condition_of(progress: Mapping[str, Any]) -> str:
    """Return the status of a broadcast, or what it does while it is queued."""
    if progress["status"] != "queued":
        return str(progress["status"])
    if progress["paused_at"] is not None:
        return "paused"
    if progress["recipients"] is None:
        return "starting"
    stage = progress["stage"]
    return stage if stage in ("canary", "checking", "testing", "deciding") else "sending"


def share_done(progress: Mapping[str, Any]) -> int:
    """Return how much of a broadcast is made, in percent."""
    whole = progress["recipients"] or 0
    return min(100, 100 * progress["copies"] // whole) if whole else 0


def time_left(plan: Mapping[str, Any], progress: Mapping[str, Any]) -> str | None:
    """Return how long the rest takes at most copies an hour; None where nothing limits it."""
    left = (progress["recipients"] or 0) - progress["copies"]
    if not plan["per_hour"] or left <= 0 or progress["status"] != "queued":
        return None
    hours = -(-left // plan["per_hour"])
    return t("broadcast.time.hours", count=number(hours))


async def links_of(visit: Visit, broadcast_id: str) -> Sequence[Mapping[str, Any]]:
    """Return the links that were followed most."""
    answer = await visit.get(f"/broadcasts/{broadcast_id}/clicked-links", limit=MOST_LINKS)
    found: Sequence[Mapping[str, Any]] = answer["data"]
    return found


def variants_of(
    broadcast: Mapping[str, Any], plan: Mapping[str, Any], progress: Mapping[str, Any]
) -> list[VariantRow]:
    """Return the variants of an A/B test with what became of them."""
    subjects = (
        {one["variant"]: one["subject"] for one in plan["ab_test"]["variants"]} if plan["ab_test"] else {}
    )
    return [
        VariantRow(
            number=one["variant"],
            letter=VARIANT_NAMES[one["variant"] - 1],
            subject=subjects.get(one["variant"]) or broadcast["subject"],
            copies=number(one["copies"]),
            opened=percent(one["opened"], one["copies"]),
            clicked=percent(one["clicked"], one["copies"]),
            by_machine=number(one["opened_by_machine"]),
            is_winner=one["variant"] == progress["winner"],
        )
        for one in progress["variants"]
    ]


async def _report(visit: Visit, broadcast: Mapping[str, Any], progress: Mapping[str, Any]) -> dict[str, Any]:
    steps = [(t(f"broadcast.type.{name}"), float(progress[name])) for name in FUNNEL]
    title = t("broadcast.funnel")
    return {
        "figures": figures(progress),
        "funnel": charts.funnel(title, t("broadcast.copies"), steps) if progress["copies"] else None,
        "chart": await _chart(visit, broadcast),
        "compared": await _compared(visit, broadcast),
    }


def figures(progress: Mapping[str, Any]) -> list[ReportCount]:
    """Return the counts of a broadcast with their rates."""
    sent, delivered = progress["sent"], progress["delivered"]
    bounce_limit, complaint_limit = BOUNCE_LIMIT, COMPLAINT_LIMIT
    is_bouncing = sent > 0 and 100 * progress["bounced"] / sent > bounce_limit
    is_complained = delivered > 0 and 100 * progress["complained"] / delivered > complaint_limit
    rows = (
        ("delivered", delivered, sent, ""),
        ("opened", progress["opened"], delivered, ""),
        ("clicked", progress["clicked"], delivered, ""),
        ("bounced", progress["bounced"], sent, "bad" if is_bouncing else ""),
        ("complained", progress["complained"], delivered, "bad" if is_complained else ""),
        ("unsubscribed", progress["unsubscribed"], delivered, ""),
        ("suppressed", progress["suppressed"], progress["copies"], ""),
    )
    return [
        ReportCount(t(f"broadcast.type.{name}"), number(amount), percent(amount, whole, 2), tone)
        for name, amount, whole, tone in rows
    ]


async def _chart(visit: Visit, broadcast: Mapping[str, Any]) -> charts.Chart | None:
    """Return opens and clicks over time."""
    begun = (await summaries(visit.db, [UUID(broadcast["id"])]))[broadcast["id"]].queued_at
    if begun is None or begun >= visit.request.at:
        return None
    end = min(visit.request.at, (_end(broadcast) or visit.request.at) + LONGEST)
    length = end - begun
    granularity = "hourly" if length <= SHORT else "daily"
    answer = await visit.get(
        "/emails/metrics",
        broadcast_id=broadcast["id"],
        dimensions="period",
        granularity=granularity,
        metrics="delivered,unique_opened,unique_clicked",
        **metric_range(begun, end, visit.request.at),
    )
    rows = answer["data"]
    if len(rows) < 2:
        return None
    series = [
        charts.Series(t("metric.delivered"), [row["delivered"] for row in rows], "tone-1"),
        charts.Series(t("metric.unique_opened"), [row["unique_opened"] for row in rows], "tone-0"),
        charts.Series(t("metric.unique_clicked"), [row["unique_clicked"] for row in rows], "tone-3"),
    ]
    labels = [period_text(str(row["period"])) for row in rows]
    return charts.lines(t("broadcast.over_time"), t("overview.period"), labels, series)


def _end(broadcast: Mapping[str, Any]) -> datetime | None:
    return instant_of(broadcast["sent_at"]) if broadcast["sent_at"] else None


async def _compared(visit: Visit, broadcast: Mapping[str, Any]) -> list[ComparedRow]:
    """Return this broadcast beside those that were begun before it."""
    earlier = (await visit.get("/broadcasts", shown=False, limit=40, after=broadcast["id"]))["data"]
    rows = [broadcast, *[row for row in earlier if row["status"] in ("sent", "canceled")][:EARLIER]]
    counts = await rates_of(visit, rows)
    known = await summaries(visit.db, [UUID(row["id"]) for row in rows])
    made = []
    for row in rows:
        found = counts.get(row["id"]) or dict.fromkeys(COUNTED, 0)
        subject = known[row["id"]].subject if row["id"] in known else ""
        made.append(
            ComparedRow(
                id=row["id"],
                name=name_of(row["name"], subject),
                sent=number(found["sent"]),
                delivered=percent(found["delivered"], found["sent"]),
                opened=percent(found["unique_opened"], found["delivered"]),
                clicked=percent(found["unique_clicked"], found["delivered"]),
                bounced=percent(found["bounced"], found["sent"], 2),
                is_this=row["id"] == broadcast["id"],
            )
        )
    return made if len(made) > 1 else []


async def _recipients(visit: Visit, here: str) -> dict[str, Any]:
    kind = visit.request.query.text("type") or "sent"
    kind = kind if kind in TYPES else "sent"
    email = visit.request.query.text("email")
    api = f"/broadcasts/{visit.request.uuid('broadcast_id')}/recipients"
    page = await list_page(visit, api, here, view="recipients", type=kind, email=email)
    return {"rows": page.rows, "paging": page.paging, "kind": kind, "email": email or ""}
