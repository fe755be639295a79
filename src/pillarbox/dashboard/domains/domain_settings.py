"""The settings of a domain, and its reputation."""

from __future__ import annotations

from typing import Any, NamedTuple
from uuid import UUID

from pillarbox.dashboard.domains.domain_form import settings_of, typed
from pillarbox.dashboard.domains.domain_page import ONE, here, report_or_404
from pillarbox.dashboard.frame import charts
from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.times import percent, period_text
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.overview.domain_reputation import (
    BOUNCE_LIMIT,
    COMPLAINT_LIMIT,
    REPUTATION_DAYS,
    tone_beside,
)
from pillarbox.dashboard.overview.overview_screen import figures, metrics
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t
from pillarbox.dashboard.texts.number_format import number
from pillarbox.domains.checks.report import DomainReport
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import Problem
from pillarbox.metrics.providers.counting import by_provider, counted_since
from pillarbox.metrics.providers.queries import ProviderSum
from pillarbox.people.roles import Right


class ProviderLine(NamedTuple):
    """A mailbox provider with what it did with the mail of the domain, as the screen shows it."""

    name: str
    sent: str
    delivered: str
    deferred: str
    bounced: str
    hard_bounces: str
    hard_bounce_tone: str
    complaints: str
    complaint_tone: str


@screen(f"{ONE}/settings", title="domain.settings", query={"done": str})
async def settings(visit: Visit) -> Reply[Html]:
    report = await report_or_404(visit)
    return await _settings_page(visit, report, given_of(report))


@act(f"{ONE}/settings", title="domain.settings", right=Right.MANAGE, back="/dashboard/domains")
async def save(visit: Visit, form: Form) -> Reply[Html]:
    report = await report_or_404(visit)
    try:
        await visit.patch(f"/domains/{report.domain.id}", settings_of(form))
    except Problem as problem:
        return await _settings_page(
            visit, report, typed(form), status=problem.status, problem=problem.message
        )
    return visit.to(f"{here(visit)}/settings", done="domain_saved")


@screen(f"{ONE}/reputation", title="domain.reputation")
async def reputation(visit: Visit) -> Reply[Html]:
    domain = await visit.get(f"/domains/{visit.request.uuid('domain_id')}", shown=False)
    end = visit.request.at
    start = end - REPUTATION_DAYS
    current = await metrics(visit, start, end, "daily", shown=True, domain_id=domain["id"])
    since = await counted_since(visit.pool)
    first_day = start.replace(hour=0, minute=0, second=0, microsecond=0)
    before = await metrics(visit, start - REPUTATION_DAYS, start, None, domain_id=domain["id"])
    return await visit.draw(
        "domains/reputation.html",
        domain=domain,
        here=here(visit),
        figures=[
            entry
            for entry in figures(current["totals"], before["totals"])
            if entry.name not in (t("metric.unique_opened"), t("metric.unique_clicked"))
        ],
        chart=_chart(current["data"]),
        has_sent=current["totals"]["sent"] > 0,
        providers=[_provider(one) for one in await by_provider(visit.db, UUID(domain["id"]), first_day)],
        counted_since=since.date().isoformat() if since is not None and since > start else None,
    )


def _provider(counts: ProviderSum) -> ProviderLine:
    sent, delivered = counts.sent, counts.delivered
    return ProviderLine(
        name=counts.provider or t("domain.providers.others"),
        sent=number(sent),
        delivered=percent(delivered, sent, 1),
        deferred=percent(counts.delivery_delayed, sent, 1),
        bounced=percent(counts.bounced, sent, 1),
        hard_bounces=percent(counts.bounced_permanent, sent, 2),
        hard_bounce_tone=tone_beside(counts.bounced_permanent, sent, BOUNCE_LIMIT),
        complaints=percent(counts.complained, delivered, 2),
        complaint_tone=tone_beside(counts.complained, delivered, COMPLAINT_LIMIT),
    )


def given_of(report: DomainReport) -> dict[str, str]:
    """Return the settings of a domain as the form shows them."""
    domain = report.domain
    switches = {
        "sending": domain.sending,
        "receiving": domain.receiving,
        "open_tracking": domain.open_tracking,
        "click_tracking": domain.click_tracking,
    }
    return {
        **{name: "on" if is_on else "" for name, is_on in switches.items()},
        "tracking_subdomain": domain.tracking_subdomain or "",
        "tls": domain.tls,
    }


async def _settings_page(
    visit: Visit,
    report: DomainReport,
    given: dict[str, str],
    *,
    status: int = 200,
    problem: str | None = None,
) -> Reply[Html]:
    return await visit.draw(
        "domains/settings.html",
        status=status,
        problem=problem,
        domain=report.domain,
        here=here(visit),
        given=given,
        may_manage=visit.may(Right.MANAGE),
    )


def _chart(rows: list[dict[str, Any]]) -> charts.Chart:
    """Return the chart of mail delivered, bounced and complained of each day, standing on each other."""
    labels = [period_text(str(row["period"])) for row in rows]
    series = [
        charts.Series(t(f"metric.{name}"), [row[name] for row in rows], tone)
        for name, tone in (("delivered", "tone-1"), ("bounced", "tone-2"), ("complained", "tone-3"))
    ]
    return charts.bars(t("domain.reputation.chart"), t("overview.period"), labels, series)
