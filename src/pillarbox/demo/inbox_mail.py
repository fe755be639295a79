"""Mail of customers to the demo's shop, and its answers."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from pillarbox.demo import inbox_texts
from pillarbox.demo.contacts import ShopAudience
from pillarbox.demo.inbox_texts import Letter
from pillarbox.demo.month import SENDING_CLIENT, DemoMonth
from pillarbox.demo.shop import HELLO, OWNER_LOCAL, WHOLESALE, Customer, customer

SPAM_CLIENT: Final = "192.0.2.66"
"""From where mail comes that SPF does not allow."""


def plan_letters(month: DemoMonth, audience: ShopAudience) -> None:
    """Plan the conversations with customers."""
    planned = [
        *((HELLO, letter) for letter in inbox_texts.LETTERS),
        *((WHOLESALE, letter) for letter in inbox_texts.WHOLESALE_LETTERS),
        (HELLO, inbox_texts.SPAM),
    ]
    writers = month.chance.sample(audience.buyers, len(planned) - 1)
    writers.append(customer("Rank", "Booster", "delivered", month.simulator, month.chance))
    for (inbox, letter), writer in zip(planned, writers, strict=True):
        month.agenda.add(
            month.day(letter.day, letter.hour), partial(letter_arrives, month, inbox, letter, writer, 0, "")
        )
    month.agenda.add(month.end - timedelta(hours=3), partial(drafts_are_left, month))


async def letter_arrives(
    month: DemoMonth, inbox: str, letter: Letter, writer: Customer, turn: int, earlier: str
) -> None:
    """Let the customer write the turn; the shop answers some hours later."""
    subject = letter.subject if turn == 0 or letter.subject.startswith("Re:") else f"Re: {letter.subject}"
    message_id = f"<{month.chance.getrandbits(72):018x}@{month.simulator}>"
    name = inbox_texts.encoded(writer.full_name)
    raw = inbox_texts.message(
        f"{name} <{writer.address}>", inbox, subject, letter.turns[turn], month.now, message_id, earlier
    )
    client = SPAM_CLIENT if letter is inbox_texts.SPAM else SENDING_CLIENT
    email_id = await month.receive(raw, writer.address, inbox, client)
    [thread] = [
        thread
        for thread in (await threads(month, inbox))
        if thread["received_at"] and subject.removeprefix("Re: ") in (thread["subject"] or "")
    ][:1]
    if turn + 1 < len(letter.turns):
        answer = partial(shop_answers, month, inbox, letter, writer, turn + 1, thread["id"], email_id)
        month.agenda.add(office_hour(month, month.now), answer)
    else:
        await thread_is_filed(month, inbox, letter, thread["id"])


async def threads(month: DemoMonth, inbox: str) -> list[dict[str, Any]]:
    """Return the newest threads of an inbox, wherever they are filed."""
    answer = await month.office.call(
        "GET", f"/inboxes/{inbox}/threads?folders=inbox,archive,sent,spam&limit=50"
    )
    return list(answer["data"])


def office_hour(month: DemoMonth, now: datetime) -> datetime:
    """Return when the shop answers: some hours later, by day."""
    when = now + timedelta(hours=month.chance.uniform(0.6, 4))
    if when.hour >= 19 or when.hour < 7:
        when = when.replace(hour=7, minute=month.chance.randint(20, 58)) + timedelta(days=when.hour >= 19)
    return when


async def shop_answers(
    month: DemoMonth, inbox: str, letter: Letter, writer: Customer, turn: int, thread: str, email: str
) -> None:
    """Answer from the inbox; the customer may write again the next day."""
    text = letter.turns[turn].format(first=writer.first)
    path = f"/inboxes/{inbox}/threads/{thread}/emails/{email}/reply"
    sent = await month.office.call("POST", path, {"text": text})
    month.pass_moment(0.4, 1.4)
    await month.settle()
    if turn + 1 < len(letter.turns):
        shown = await month.office.call("GET", f"/inboxes/{inbox}/threads/{thread}/emails/{sent['id']}")
        when = month.now + timedelta(hours=month.chance.uniform(2, 22))
        again = partial(letter_arrives, month, inbox, letter, writer, turn + 1, shown["message_id"])
        month.agenda.add(when, again)
    else:
        await thread_is_filed(month, inbox, letter, thread)


async def thread_is_filed(month: DemoMonth, inbox: str, letter: Letter, thread: str) -> None:
    """Put labels on a thread, and file it."""
    path = f"/inboxes/{inbox}/threads/{thread}"
    listed = await month.office.call("GET", f"/inboxes/{inbox}/labels")
    ids = [label["id"] for label in listed["data"] if label["name"] in letter.labels]
    if ids:
        await month.office.call("POST", f"{path}/labels", {"labels": ids})
    if letter.is_read:
        await month.office.call("PATCH", path, {"read": True})
    if letter.folder != "inbox":
        await month.office.call("PATCH", path, {"folder": letter.folder})
    if letter.is_assigned:
        members = f"{OWNER_LOCAL}@{month.simulator}"
        await month.office.call("PUT", f"{path}/assignee", {"email": members})
    await month.settle()


async def drafts_are_left(month: DemoMonth) -> None:
    """Leave an answer that is not finished, and a draft of a new mail."""
    waiting = next(t for t in await threads(month, HELLO) if t["subject"] == "Tea pot drips")
    path = f"/inboxes/{HELLO}/threads/{waiting['id']}/emails"
    [email] = (await month.office.call("GET", path))["data"][:1]
    body = {
        "text": "Hi,\n\na little butter under the spout helps. If it does not, send us a picture and",
        "thread_id": waiting["id"],
        "reply_to_email_id": email["id"],
    }
    await month.office.call("POST", f"/inboxes/{HELLO}/drafts", body)
    text = "Hi,\n\nhere is our price list for next year."
    draft = {"to": f"delivered+cafe@{month.simulator}", "subject": "Price list", "text": text}
    await month.office.call("POST", f"/inboxes/{WHOLESALE}/drafts", draft)
