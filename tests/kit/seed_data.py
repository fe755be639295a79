"""A team that has some of everything, for tests that read everything."""

from __future__ import annotations

from kit.automation_rows import lone_trigger
from kit.builders import BUILDERS, Made, a_received_email
from kit.inboxes import create as create_inbox
from kit.inboxes import inbox_domain
from kit.manual_world import run_jobs
from kit.world import Team, World, mail
from pillarbox.domains import trust
from pillarbox.domains.context import DomainContext

INBOX_DOMAIN = "desk.example"
"""Where the team may have inboxes."""

CAPTURE_TOKEN = "capture-token"
"""As `kit.world` sets it."""


async def seed_team(pillarbox: World) -> Team:
    """Make a team with sent, bounced, scheduled and received mail, domains, keys, webhooks with events, and
    a log."""
    team = await pillarbox.team("Seeded")
    await team.post("/webhooks", {"endpoint": "https://hooks.harbor.example/in", "events": KINDS})
    made: Made = {}
    for name, build in BUILDERS.items():
        made[name] = await build(team, made)
    await a_received_email(team, {})
    await team.domain("full.example")
    await inbox_domain(team, INBOX_DOMAIN)
    await create_inbox(team, f"help@{INBOX_DOMAIN}", from_name="Mina")
    for wanted in ({"receiving": "enabled"}, {"sending": "disabled", "receiving": "enabled"}):
        name = f"d{len(wanted)}.example"
        await team.post("/domains", {"name": name, "capabilities": wanted, "tracking_subdomain": "links"})
    inline = {"content": "aGk=", "filename": "plan.png", "content_id": "plan"}
    await team.send(
        attachments=[inline], cc="cy@quay.example", bcc=["bo@quay.example"], reply_to="a@quay.example"
    )
    await team.send(to=["bounced@pillarbox.test", "delivered@pillarbox.test"], text="", tags=[TAG])
    await team.send(to="suppressed@pillarbox.test")
    await pillarbox.turn()
    await run_jobs(pillarbox)
    return team


async def rival(pillarbox: World, name: str) -> None:
    """Make another team that has verified a domain of this name."""
    other = await pillarbox.team("Rival")
    await trust.trust(pillarbox.pool, name, other.id, pillarbox.app.need(DomainContext))


KINDS = [
    *("email.sent", "email.bounced", "email.received", "domain.created", "suppression.added"),
    *("topic.created", "inbox.created"),
    *("contact.created", "contact.topics.updated"),
]
TAG = {"name": "kind", "value": "berth"}

POSTED = {
    "/contacts/bulk-acts": {"action": "unsubscribe", "all": True},
    "/emails": mail(tags=[TAG]),
    "/emails/batch": [mail(), mail(to=["no address"])],
    "/api-keys": {"name": "Described"},
    "/domains": {"name": "described.example", "tracking_subdomain": "links"},
    "/domains/claim": {"name": "claimed.example"},
    "/webhooks": {"endpoint": "https://hooks.harbor.example/in", "events": ["email.sent"]},
    "/suppressions": {"email": "described@quay.example"},
    "/suppressions/batch/add": {"emails": ["described@quay.example", "other@quay.example"]},
    "/suppressions/batch/remove": {"emails": ["other@quay.example"]},
    "/contacts": {"email": "described@quay.example", "unsubscribed": True},
    "/contact-properties": {"key": "described", "type": "number", "fallback_value": 1.5},
    "/inboxes": {"email_address": f"described@{INBOX_DOMAIN}", "friendly_name": "Berth"},
    "/events": {"name": "described", "schema": {"plan": "string"}},
    "/events/send": {"event": "described", "email": "described@quay.example", "payload": {"plan": "pro"}},
    "/topics": {"name": "Described", "default_subscription": "opt_out", "description": None},
    "/forms": {"name": "Described", "from": "Harbor <hello@harbor.example>", "subject": "Please confirm"},
    "/automations": {"name": "Described", **lone_trigger("described")},
    "/segments": {"name": "Described"},
    "/audiences": {"name": "Described"},
    "/templates": {
        "name": "Described",
        "html": "<p>{{{A}}}</p>",
        "variables": [{"key": "A", "type": "number", "fallback_value": 1}],
    },
}
"""A valid body for each route that makes something and has no parameters in its path."""

FORMS = {"/contacts/imports": {"file": ("people.csv", b"email\ndescribed@quay.example\n")}}
"""The files of each route that takes a form."""

HEADERS = {"/emails/batch": {"x-batch-validation": "permissive"}}

QUERIES = {
    "/broadcasts/{broadcast_id}/recipients": ("?type=clicked", "?type=delivered"),
    "/emails/metrics": ("", "?dimensions=period,domain", "?dimensions=email&metrics=sent,open_rate"),
    "/emails/receiving/{email_id}": ("", "?html_format=cid"),
    "/inboxes/{inbox}/threads": ("", "?wait=0", "?folders=inbox,sent&read=false"),
    "/inboxes/{inbox}/threads/search": ("", "?has_attachment=false&start_date=2020-01-01"),
}
"""Questions whose answers differ."""
