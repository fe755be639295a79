"""The start of the demo's shop: its domains, webhooks, templates, contacts and inboxes."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from pillarbox.demo import inbox_texts, mail_texts
from pillarbox.demo.contacts import BUYERS, NEWSLETTER, OLD_LIST, RESELLERS, SEGMENTS, ShopAudience
from pillarbox.demo.mail_texts import STUDIO_LETTERS
from pillarbox.demo.month import DemoMonth
from pillarbox.demo.schedule import DAYS
from pillarbox.demo.shop import BROKEN_DOMAIN, CRM_HOOK, DOMAIN, HELLO, NEWS_DOMAIN, SHOP_HOOK, WHOLESALE
from pillarbox.domains import trust
from pillarbox.domains.context import DomainContext
from pillarbox.domains.senders import Senders

OUTAGE_BEGINS: Final = (13, 14.0)
OUTAGE_HOURS: Final = 3.0
BROKEN_RECORDS: Final = {f"send.{BROKEN_DOMAIN}": "v=spf1 include:_spf.hosting.example ~all"}
"""The DNS of the domain that needs attention: the SPF record of somebody else, and no DKIM record."""

SHOP_EVENTS: Final = (
    *("email.delivered", "email.bounced", "email.complained", "email.failed", "email.suppressed"),
    "email.received",
)
CRM_EVENTS: Final = (
    *("contact.created", "contact.updated", "email.clicked", "email.complained"),
    *("inbox.thread.created", "domain.updated"),
)


def receiver_answer(today: datetime, url: str, kind: str, now: datetime) -> tuple[int, str]:
    """Return how the shop's own programs answer a webhook: one was away for an afternoon, and it cannot read
    one kind of event."""
    day, hour = OUTAGE_BEGINS
    begin = today.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=day - DAYS, hours=hour)
    if url == CRM_HOOK:
        if begin <= now < begin + timedelta(hours=OUTAGE_HOURS):
            return 502, "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"
        if kind == "email.complained":
            return 422, '{"error":"unknown event type: email.complained"}'
        return 202, '{"queued":true}'
    return 200, '{"ok":true}'


async def set_up(month: DemoMonth, audience: ShopAudience) -> None:
    """Make what the shop had before the month began."""
    office = month.office
    await add_domains(month)
    for url, events in ((SHOP_HOOK, SHOP_EVENTS), (CRM_HOOK, CRM_EVENTS)):
        await office.call("POST", "/webhooks", {"endpoint": url, "events": events})
        month.pass_moment(40, 90)
    for template in (mail_texts.SHIPPED, mail_texts.REVIEW, mail_texts.WORKSHOP):
        made = await office.call("POST", "/templates", template)
        month.pass_moment(60, 240)
        await office.call("POST", f"/templates/{made['id']}/publish")
    await office.call("POST", "/templates", mail_texts.SPRING_DRAFT)
    await add_contacts(month, audience)
    await add_inboxes(month)
    await month.settle()


async def add_domains(month: DemoMonth) -> None:
    """Add the domains. The operator vouches for two of them, so that they stay verified without any DNS; the
    records of the third are never published."""
    capabilities = {"sending": "enabled", "receiving": "enabled"}
    wanted: list[dict[str, Any]] = [
        {"name": DOMAIN, "region": "eu-west-1", "capabilities": capabilities},
        {"name": NEWS_DOMAIN, "region": "eu-west-1"},
    ]
    tracked = {"tracking_subdomain": "links", "open_tracking": True, "click_tracking": True}
    context, pool = month.app.need(DomainContext), month.app.kit.pool
    for fields in wanted:
        await month.office.call("POST", "/domains", {**fields, **tracked})
        month.pass_moment(100, 500)
        await trust.trust(pool, fields["name"], month.team_id, context, tracking=True)
    month.app.need(Senders).forget(month.team_id)
    month.agenda.add(month.day(3, 15.2), partial(add_broken_domain, month))


async def add_broken_domain(month: DemoMonth) -> None:
    """Add a domain whose DKIM record nobody publishes: its check fails after three days."""
    made = await month.office.call("POST", "/domains", {"name": BROKEN_DOMAIN, "region": "eu-west-1"})
    month.pass_moment(200, 300)
    await month.office.call("POST", f"/domains/{made['id']}/verify")


async def add_contacts(month: DemoMonth, audience: ShopAudience) -> None:
    """Make properties, topics, segments and contacts."""
    office = month.office
    for key, kind in (("city", "string"), ("orders", "number")):
        await office.call("POST", "/contact-properties", {"key": key, "type": kind})
    topics = (
        (STUDIO_LETTERS, "Once a week: new pieces, and how they are made", "opt_in"),
        ("Workshops", "When places at the wheel are free", "opt_out"),
    )
    for name, description, choice in topics:
        body = {
            "name": name,
            "description": description,
            "default_subscription": choice,
            "visibility": "public",
        }
        audience.topics[name] = (await office.call("POST", "/topics", body))["id"]
    for name in SEGMENTS:
        audience.segments[name] = (await office.call("POST", "/segments", {"name": name}))["id"]
        month.pass_moment(5, 20)
    lists = (
        (NEWSLETTER, audience.readers),
        (BUYERS, audience.buyers),
        (RESELLERS, audience.wholesale),
        (OLD_LIST, audience.imported),
    )
    for person in audience.everybody:
        segments = [audience.segments[name] for name, people in lists if person in people]
        fields: dict[str, Any] = {
            "email": person.address,
            "first_name": person.first,
            "last_name": person.last,
            "properties": {"city": person.city, "orders": person.orders},
            "segments": segments,
        }
        await office.call("POST", "/contacts", fields)
        month.pass_moment(0.2, 2)


async def add_inboxes(month: DemoMonth) -> None:
    """Make the two inboxes with their labels."""
    office = month.office
    for address, name in ((HELLO, "Customer care"), (WHOLESALE, "Wholesale")):
        body = {"email_address": address, "name": name, "from_name": "Mara at Saltmarsh"}
        made = await office.call("POST", "/inboxes", body)
        for label, color in inbox_texts.LABELS:
            await office.call("POST", f"/inboxes/{made['id']}/labels", {"name": label, "color": color})
