"""The layout of every screen: navigation, team, notices, and the calls of the API behind the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import asyncpg

from pillarbox.dashboard.frame import assets
from pillarbox.dashboard.frame.code_samples import ApiExample, CodeSample, first_mail, samples_of
from pillarbox.dashboard.frame.reference_links import reference_of
from pillarbox.dashboard.frame.screen_table import ScreenTable
from pillarbox.dashboard.pages import page, prepare
from pillarbox.dashboard.people import saved_form
from pillarbox.dashboard.people.page_visits import HEADERS
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply, Request
from pillarbox.kernel.http.routing import RouteTable
from pillarbox.people.membership import members
from pillarbox.people.roles import Right
from pillarbox.people.visitors import Visitor

POLICY: Final = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self' data:; "
    "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""No code and no style in the page, and nothing from elsewhere."""


async def draw_screen(
    request: Request,
    visitor: Visitor,
    template: str,
    *,
    path: str,
    title: str,
    calls: Sequence[ApiExample],
    status: int,
    problem: str | None,
    notice: str | None,
    **values: Any,
) -> Reply[Html]:
    """Return a screen as a page, with all headers of UI-04. `calls` are what it called of the API."""
    table = request.use(ScreenTable)
    await prepare(template)
    teams = await members.teams_of(request.use(asyncpg.Pool), visitor.person_id)
    return page(
        template,
        status=status,
        headers={**HEADERS, "content-security-policy": POLICY},
        visitor=visitor,
        form_token=visitor.form_token,
        kept=saved_form.kept(request, visitor),
        navigation=table.navigation(visitor, path),
        title=t(title),
        teams=[team for team in teams if team.team_id != visitor.team_id],
        problem_text=problem,
        notice_text=notice if problem is None else None,
        samples=_with_references(request, calls, samples_of(calls, table.public_url)),
        has_screen=table.leads_to,
        is_account=path.startswith("/account"),
        may_use=visitor.may(Right.USE),
        first_mail=first_mail(table.public_url),
        stylesheet=assets.address("dashboard.css"),
        script=assets.address("dashboard.js"),
        asset=assets.address,
        **values,
    )


def _with_references(
    request: Request, calls: Sequence[ApiExample], samples: Sequence[CodeSample]
) -> list[CodeSample]:
    """Return the samples with the addresses of their operations' pages."""
    table = request.use(RouteTable)
    addresses = [reference_of(table, call.method, call.path) for call in calls]
    return [sample._replace(reference=address) for sample, address in zip(samples, addresses, strict=True)]


def choices(values: Iterable[str], prefix: str) -> Mapping[str, str]:
    """Return the texts of these values, for a select field: `<prefix>.<value>`."""
    return {value: t(f"{prefix}.{value}") for value in values}
