"""The overview: what was sent in a period against the one before it, and what needs attention."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from pillarbox.dashboard.frame import charts
from pillarbox.dashboard.frame.metrics_periods import metric_range
from pillarbox.dashboard.frame.screen_table import NavigationEntry
from pillarbox.dashboard.frame.screens import screen
from pillarbox.dashboard.frame.times import percent, period_text, zone
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.overview.domain_reputation import BOUNCE_LIMIT, COMPLAINT_LIMIT, rates_by_domain
from pillarbox.dashboard.overview.first_steps import first_steps, snippets
from pillarbox.dashboard.texts import t
from pillarbox.dashboard.texts.number_format import number
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.webhooks.log import DeliveryLog

HERE: Final = "/dashboard"
COUNTED: Final = ("sent", "delivered", "bounced", "complained", "unique_opened", "unique_clicked")
ASKED: Final = (*COUNTED, "bounced_permanent")


class Span(NamedTuple):
    """A period that the overview can show: its length, and the granularity of its chart."""

    length: timedelta
    granularity: str


SPANS: Final[Mapping[str, Span]] = {
    "24h": Span(timedelta(hours=24), "hourly"),
    "7d": Span(timedelta(days=7), "daily"),
    "30d": Span(timedelta(days=30), "daily"),
    "90d": Span(timedelta(days=90), "weekly"),
}


class OverviewMetric(NamedTuple):
    """A figure of the overview with its note."""

    name: str
    amount: str
    note: str
    tone: str
    href: str | None


@screen(
    HERE,
    title="overview.title",
    words="overview.words",
    navigation=NavigationEntry(group="email", order=10, icon="home", keys="o"),
    query={"span": str, "done": str},
)
async def show(visit: Visit) -> Reply[Html]:
    """Show the overview."""
    return await overview_page(visit)


async def overview_page(
    visit: Visit, *, token: str | None = None, status: int = 200, problem: str | None = None
) -> Reply[Html]:
    """Return the overview. `token` is that of a key that was just made, for the code of a first email."""
    chosen = visit.request.query.text("span") or "7d"
    chosen = chosen if chosen in SPANS else "7d"
    span, now = SPANS[chosen], visit.request.at
    current = await metrics(visit, now - span.length, now, span.granularity, shown=True)
    before = await metrics(visit, now - 2 * span.length, now - span.length, None)
    latest = (await visit.get("/emails", shown=False, limit=8))["data"]
    domains = (await visit.get("/domains", shown=False, limit=100))["data"]
    rates = await rates_by_domain(visit, shown=False) if domains else {}
    return await visit.draw(
        "overview/overview.html",
        status=status,
        problem=problem,
        steps=await first_steps(visit, has_mail=bool(latest), domains=domains),
        snippets=snippets(visit, domains, token),
        token=token,
        chosen=chosen,
        spans=[(f"{HERE}?span={name}", t(f"overview.span.{name}"), None) for name in SPANS],
        figures=figures(current["totals"], before["totals"]),
        chart=_chart(current["data"]),
        latest=latest,
        domains=[domain for domain in domains if domain["status"] != "verified"],
        bad_domains=[domain for domain in domains if domain["id"] in rates and rates[domain["id"]].is_bad],
        rates=rates,
        failing=[
            webhook
            for webhook in await visit.request.use(DeliveryLog).failures(visit.db, None, visit.request.at)
            if webhook.failed
        ],
    )


def figures(now: Mapping[str, Any], before: Mapping[str, Any]) -> list[OverviewMetric]:
    """Return the counts of a period with their change, and the rates that providers watch."""
    counts = [
        OverviewMetric(
            name=t(f"metric.{name}"),
            amount=number(now[name]),
            note=_change(now[name], before[name]),
            tone="",
            href=None,
        )
        for name in COUNTED
    ]
    return [
        *counts,
        _rate("overview.complaint_rate", now["complained"], now["delivered"], COMPLAINT_LIMIT),
        _rate("overview.hard_bounce_rate", now["bounced_permanent"], now["sent"], BOUNCE_LIMIT),
    ]


def _rate(key: str, part: int, whole: int, limit: float) -> OverviewMetric:
    is_above = whole > 0 and 100 * part / whole > limit
    note = t("overview.above_limit" if is_above else "overview.limit", limit=percent(limit, 100))
    return OverviewMetric(
        name=t(key), amount=percent(part, whole, 2), note=note, tone="bad" if is_above else "", href=None
    )


def _change(now: int, before: int) -> str:
    if not before:
        return t("overview.none_before") if now else t("overview.as_before")
    change = 100 * (now - before) / before
    if abs(change) < 0.5:
        return t("overview.as_before")
    return t("overview.more" if change > 0 else "overview.less", percent=number(abs(change), 0))


def _chart(rows: list[dict[str, Any]]) -> charts.Chart:
    labels = [period_text(str(row["period"])) for row in rows]
    series = [
        charts.Series(t("metric.delivered"), [row["delivered"] for row in rows], "tone-1"),
        charts.Series(t("metric.bounced"), [row["bounced"] for row in rows], "tone-2"),
        charts.Series(t("metric.unique_opened"), [row["unique_opened"] for row in rows], "tone-0"),
    ]
    return charts.lines(t("overview.chart"), t("overview.period"), labels, series)


async def metrics(
    visit: Visit,
    start: datetime,
    end: datetime,
    granularity: str | None,
    *,
    shown: bool = False,
    domain_id: str | None = None,
) -> Any:
    """Return the metrics of a period, of all domains or of one, cut by the granularity if one is given."""
    return await visit.get(
        "/emails/metrics",
        shown=shown,
        **metric_range(start, end, visit.request.at),
        timezone=getattr(zone(), "key", "UTC"),
        granularity=granularity,
        metrics=",".join(ASKED),
        dimensions="period" if granularity else None,
        domain_id=domain_id,
    )
