"""The first steps of a team: what the visitor may do, ticked by fact, until all is done or put away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from pillarbox.dashboard.frame.code_samples import PLACEHOLDER, first_mail, first_mail_by_curl
from pillarbox.dashboard.frame.screen_table import ScreenTable
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.people.membership import members
from pillarbox.people.own_account import OwnAccount
from pillarbox.people.roles import Right

MAIL: Final = "mail"
UNVERIFIED: Final = "your-domain.example"


class ChecklistEntry(NamedTuple):
    """One thing to do. Its texts are `steps.<name>` and `steps.<name>.text`."""

    name: str
    href: str
    is_done: bool


async def first_steps(visit: Visit, *, has_mail: bool, domains: Sequence[Any]) -> list[ChecklistEntry]:
    """Return the steps that the visitor may do; none where all are done, or were put away."""
    person_id = visit.visitor.person_id
    member = await members.first_steps(visit.db, person_id)
    if member is None or member.are_hidden:
        return []
    steps = []
    if visit.may(Right.USE):
        steps.append(ChecklistEntry(MAIL, "/dashboard/send", has_mail))
    if visit.may(Right.MANAGE):
        is_verified = any(domain["status"] == "verified" for domain in domains)
        webhooks = await visit.get("/webhooks", shown=False, limit=1)
        steps += [
            ChecklistEntry("domain", "/dashboard/domains/add", bool(domains)),
            ChecklistEntry("verify", _unverified(domains), is_verified),
            ChecklistEntry("webhook", "/dashboard/webhooks/new", bool(webhooks["data"])),
            ChecklistEntry("invite", "/team/members", member.has_invited),
        ]
    has_factor = await visit.request.use(OwnAccount).has_second_factor(person_id)
    steps.append(ChecklistEntry("factor", "/account", has_factor))
    return [] if all(step.is_done for step in steps) else steps


def _unverified(domains: Sequence[Any]) -> str:
    """Return the page of a domain that is not verified; that of all where there is none."""
    ids = (domain["id"] for domain in domains if domain["status"] != "verified")
    return f"/dashboard/domains/{next(ids, '')}".rstrip("/")


def snippets(visit: Visit, domains: Sequence[Any], token: str | None) -> dict[str, str]:
    """Return the code of a first mail to the visitor: from a verified domain, if there is one."""
    url = visit.request.use(ScreenTable).public_url
    verified = (domain["name"] for domain in domains if domain["status"] == "verified")
    sender, to = f"hello@{next(verified, UNVERIFIED)}", visit.visitor.email
    key = token or PLACEHOLDER
    return {
        "curl": first_mail_by_curl(url, token=key, sender=sender, to=to),
        "Python": first_mail(url, token=key, sender=sender, to=to),
    }
