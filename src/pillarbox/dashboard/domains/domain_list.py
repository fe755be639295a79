"""The list of domains with what each sent in 30 days, and the form that adds or claims one."""

from __future__ import annotations

from typing import Any, Final

from pillarbox.dashboard.domains.domain_form import label_or_none, settings_of, typed
from pillarbox.dashboard.frame.code_samples import ApiExample, samples_of
from pillarbox.dashboard.frame.paging import list_page
from pillarbox.dashboard.frame.screen_table import NavigationEntry, ScreenTable
from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.overview.domain_reputation import rates_by_domain
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t
from pillarbox.domains.create import OwnedElsewhere
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import Problem
from pillarbox.people.roles import Right

HERE: Final = "/dashboard/domains"
ADD: Final = f"{HERE}/add"
FIRST_DOMAIN: Final = ApiExample("POST", "/domains", {}, {"name": "mail.example.com"})
NEW: Final[dict[str, str]] = {
    "name": "",
    "custom_return_path": "send",
    "sending": "on",
    "tls": "opportunistic",
}
"""The values that the form of a new domain begins with."""


@screen(
    HERE,
    title="domains.title",
    words="domains.words",
    navigation=NavigationEntry(group="email", order=40, icon="globe", keys="d"),
    query={"after": str, "before": str, "done": str},
)
async def index(visit: Visit) -> Reply[Html]:
    page = await list_page(visit, "/domains", HERE)
    return await visit.draw(
        "domains/list.html",
        domains=page.rows,
        paging=page.paging,
        rates=await rates_by_domain(visit) if page.rows else {},
        may_manage=visit.may(Right.MANAGE),
        first_domain=samples_of([FIRST_DOMAIN], visit.request.use(ScreenTable).public_url)[0].python,
    )


@screen(ADD, title="domains.add", words="domains.add.words", right=Right.MANAGE)
async def add(visit: Visit) -> Reply[Html]:
    return await _add_page(visit, NEW)


@act(ADD, title="domains.add", right=Right.MANAGE, back=ADD)
async def create(visit: Visit, form: Form) -> Reply[Html]:
    body = settings_of(form) | _identity(form)
    try:
        domain = await visit.post("/domains", body)
    except Problem as problem:
        return await _refused(visit, form, problem)
    return visit.to(f"{HERE}/{domain['id']}", done="domain_added")


@act(f"{HERE}/claim", title="domains.claim", right=Right.MANAGE, back=ADD)
async def claim(visit: Visit, form: Form) -> Reply[Html]:
    """Begin to prove that a name belongs to this team, though another team has verified it."""
    settings = settings_of(form)
    options = {name: settings[name] for name in ("open_tracking", "click_tracking", "tracking_subdomain")}
    try:
        made = await visit.post("/domains/claim", options | _identity(form))
    except Problem as problem:
        return await _refused(visit, form, problem)
    return visit.to(f"{HERE}/{made['domain_id']}", done="domain_claimed")


def _identity(form: Form) -> dict[str, Any]:
    """Return the fields that cannot be changed later."""
    return {
        "name": form.get("name"),
        "custom_return_path": label_or_none(form, "custom_return_path") or NEW["custom_return_path"],
    }


async def _refused(visit: Visit, form: Form, problem: Problem) -> Reply[Html]:
    """Show the form again with what was typed. A name of another team can be claimed."""
    is_elsewhere = isinstance(problem, OwnedElsewhere)
    text = t("domains.elsewhere", name=form.get("name")[:100]) if is_elsewhere else problem.message
    return await _add_page(visit, typed(form), status=problem.status, problem=text, is_claimable=is_elsewhere)


async def _add_page(
    visit: Visit,
    given: dict[str, str],
    *,
    status: int = 200,
    problem: str | None = None,
    is_claimable: bool = False,
) -> Reply[Html]:
    return await visit.draw(
        "domains/add.html", status=status, problem=problem, given=given, is_claimable=is_claimable
    )
