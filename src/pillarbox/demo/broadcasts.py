"""Letters of the demo's shop to its subscribers, and the one to an old list that went wrong."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any, Final
from uuid import UUID

from pillarbox.demo import mail_texts, work_queries
from pillarbox.demo.contacts import NEWSLETTER, OLD_LIST, ShopAudience
from pillarbox.demo.mail_texts import STUDIO_LETTERS, Newsletter
from pillarbox.demo.month import DemoMonth
from pillarbox.demo.schedule import THURSDAY, TUESDAY
from pillarbox.demo.shop import HELLO, LETTERS

NEWSLETTER_HOUR: Final = 9.5
LEAVING: Final = 0.006


def plan_newsletters(month: DemoMonth, audience: ShopAudience) -> None:
    """Plan four letters, the one to an old list that went wrong, one that is scheduled, and a draft."""
    for day, newsletter in zip(month.days(THURSDAY)[-4:], mail_texts.NEWSLETTERS, strict=True):
        send = partial(
            newsletter_goes_out, month, audience, newsletter, NEWSLETTER, opened=0.44, clicked=0.24
        )
        month.agenda.add(month.day(day, NEWSLETTER_HOUR), send)
    bad_day = month.days(TUESDAY)[-2]
    bad = partial(
        newsletter_goes_out, month, audience, mail_texts.WIN_BACK, OLD_LIST, opened=0.14, clicked=0.1
    )
    month.agenda.add(month.day(bad_day, 15.1), bad)
    month.agenda.add(month.end - timedelta(hours=20), partial(next_letters_are_prepared, month, audience))


def broadcast(newsletter: Newsletter, audience: ShopAudience, segment: str) -> dict[str, Any]:
    """Return the body of a broadcast."""
    body: dict[str, Any] = {
        "name": newsletter.name,
        "segment_id": audience.segments[segment],
        "topic_id": audience.topics[STUDIO_LETTERS],
        "from": LETTERS,
        "reply_to": HELLO,
        "subject": newsletter.subject,
        "html": newsletter.html,
    }
    return {**body, "preview_text": newsletter.preview} if newsletter.preview else body


async def newsletter_goes_out(
    month: DemoMonth,
    audience: ShopAudience,
    newsletter: Newsletter,
    segment: str,
    opened: float,
    clicked: float,
) -> None:
    """Send a broadcast, and plan who reads it."""
    made = await month.office.call("POST", "/broadcasts", broadcast(newsletter, audience, segment))
    month.pass_moment(400, 900)
    await month.office.call("POST", f"/broadcasts/{made['id']}/send")
    month.pass_moment(1, 3)
    await month.send_copies()
    link = mail_texts.SITE + newsletter.link[1]
    sent = await work_queries.copies(month.app.kit.pool, month.team_id, UUID(made["id"]))
    topic = audience.topics[STUDIO_LETTERS]
    for email_id, address in sent:
        person = audience.by_address[address]
        month.is_read_later(email_id, person, link, opened=opened, clicked=clicked)
        if month.chance.random() < LEAVING:
            month.agenda.add(
                month.now + timedelta(hours=2), partial(month.leave_topic, email_id, person, topic)
            )
    bad = [address for _, address in sent if not address.startswith("delivered")]
    if bad:
        month.agenda.add(month.now + timedelta(hours=1.5), partial(list_is_cleaned, month, bad))


async def list_is_cleaned(month: DemoMonth, bad: list[str]) -> None:
    """Suppress the addresses that have bounced or complained: the simulator's are not, by themselves."""
    await month.office.call("POST", "/suppressions/batch/add", {"emails": bad})
    await month.settle()


async def next_letters_are_prepared(month: DemoMonth, audience: ShopAudience) -> None:
    """Plan the next letter, and leave a draft of the one after it."""
    made = await month.office.call(
        "POST", "/broadcasts", broadcast(mail_texts.NEXT_LETTER, audience, NEWSLETTER)
    )
    due = month.end + timedelta(days=2, hours=3)
    month.pass_moment(100, 200)
    body = {"scheduled_at": due.replace(minute=30, second=0, microsecond=0).isoformat()}
    await month.office.call("POST", f"/broadcasts/{made['id']}/send", body)
    await month.office.call("POST", "/broadcasts", broadcast(mail_texts.DRAFT_LETTER, audience, NEWSLETTER))
