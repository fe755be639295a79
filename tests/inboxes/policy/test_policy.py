"""The policy of an inbox (inboxes.md 3.7): for each way by which mail is sent, and for mail that comes in."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from kit.inbox_mail import CUSTOMER, InboxMail, inbox_mail
from kit.inboxes import create, inbox_domain
from kit.smtp_listener import SmtpReply
from kit.submission import message_bytes, queued_id, submission
from pillarbox.emails.accept import Accept
from pillarbox.emails.requests.parse import outgoing
from pillarbox.inboxes.personal_queries import erase_listed
from pillarbox.inboxes.policy import queries
from pillarbox.inboxes.policy.rules import RecipientRefused
from pillarbox.kernel.personal_data import ERASED_ADDRESS
from pillarbox.kernel.security.authentication import Caller, Permission

HELP = "help@harbor.example"
EVE = "eve@evil.example"
NOTHING: dict[str, Any] = {
    "object": "inbox_policy",
    "applies_to": "programs",
    "allowed_senders": [],
    "blocked_senders": [],
    "blocked_mail": "spam",
    "may_write_to": "anybody",
    "allowed_recipients": [],
    "blocked_recipients": [],
    "attachments": True,
    "messages_per_hour": None,
    "messages_per_day": None,
    "reply_only": False,
    "footer": None,
    "approval": "never",
    "updated_at": None,
}


@pytest.fixture
def mail(database_url: str, tmp_path: Path) -> AbstractAsyncContextManager[InboxMail]:
    return inbox_mail(database_url, tmp_path)


async def policy(mail: InboxMail, **fields: Any) -> dict[str, Any]:
    answer = await mail.team.call("PUT", f"/inboxes/{HELP}/policy", fields)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def sends(mail: InboxMail, to: str = EVE, **fields: Any) -> httpx.Response:
    body = {"from": f"Help <{HELP}>", "to": to, "subject": "Berth 12", "text": "Hello", **fields}
    return await mail.team.post("/emails", body)


def told(answer: httpx.Response) -> tuple[int, str, str]:
    found = answer.json()
    return answer.status_code, found["name"], found["message"]


async def test_a_policy_is_replaced_as_a_whole(mail: InboxMail) -> None:
    await mail.inbox(HELP)
    shown = (await mail.team.get(f"/inboxes/{HELP}/policy")).json()
    assert (list(shown), shown) == (list(NOTHING), NOTHING)
    made = await policy(
        mail,
        allowed_senders=[" Ada@Quay.Example", "quay.example", "QUAY.example"],
        may_write_to="listed",
        footer=" Written by a program.\r\nAsk us. ",
        messages_per_hour=3,
    )
    assert made["updated_at"] is not None
    assert {**made, "updated_at": None} == {
        **NOTHING,
        "allowed_senders": ["ada@quay.example", "quay.example"],
        "may_write_to": "listed",
        "footer": "Written by a program.\nAsk us.",
        "messages_per_hour": 3,
    }
    again = await policy(mail, approval="always")
    assert {**again, "updated_at": None} == {**NOTHING, "approval": "always"}
    assert (await mail.team.get(f"/inboxes/{HELP}/policy")).json() == again


WRONG: list[dict[str, Any]] = [
    {"applies_to": "robots"},
    {"may_write_to": "friends"},
    {"approval": "sometimes"},
    {"blocked_mail": "bounce"},
    {"allowed_senders": "ada@quay.example"},
    {"allowed_senders": [7]},
    {"blocked_senders": ["Ada <ada@quay.example>"]},
    {"allowed_recipients": ["a b"]},
    {"blocked_recipients": ["x.example"] * 501},
    {"attachments": "no"},
    {"messages_per_hour": 0},
    {"messages_per_day": 1.5},
    {"reply_only": 1},
    {"footer": "x" * 501},
    {"footer": "  "},
    {"footer": "{{{UNSUBSCRIBE_URL}}}"},
]


async def test_what_is_no_policy_changes_nothing(mail: InboxMail) -> None:
    await mail.inbox(HELP)
    for fields in WRONG:
        answer = await mail.team.call("PUT", f"/inboxes/{HELP}/policy", fields)
        assert (answer.status_code, answer.json()["name"]) == (422, "validation_error"), fields
    assert (await mail.team.get(f"/inboxes/{HELP}/policy")).json() == NOTHING


async def test_a_policy_holds_for_its_inbox_alone(mail: InboxMail) -> None:
    await mail.inbox(HELP)
    await policy(mail, may_write_to="listed")
    refused = (
        403,
        "validation_error",
        f"The policy of this inbox allows mail to listed recipients alone. {EVE} is not allowed.",
    )
    assert told(await sends(mail)) == refused
    assert told(await sends(mail, **{"from": "help+notes@harbor.example"})) == refused
    assert (await sends(mail, **{"from": "notes@harbor.example"})).status_code == 200
    await policy(mail)
    assert (await sends(mail)).status_code == 200


async def test_copies_are_recipients_too(mail: InboxMail) -> None:
    await mail.inbox(HELP)
    await policy(mail, may_write_to="listed", allowed_recipients=["customer.example"])
    assert (await sends(mail, CUSTOMER)).status_code == 200
    for role in ("cc", "bcc"):
        assert (await sends(mail, CUSTOMER, **{role: EVE})).status_code == 403
    await policy(mail, blocked_recipients=["evil.example"])
    message = f"The policy of this inbox blocks mail to {EVE}."
    assert told(await sends(mail, CUSTOMER, bcc=EVE)) == (403, "validation_error", message)


async def test_contacts_and_who_wrote_before(mail: InboxMail) -> None:
    await mail.inbox(HELP)
    await policy(mail, may_write_to="contacts")
    assert (await sends(mail, "Ada@quay.example")).status_code == 403
    await mail.team.post("/contacts", {"email": "ada@quay.example"})
    assert (await sends(mail, "Ada <Ada@quay.example>")).status_code == 200
    await policy(mail, may_write_to="who_wrote_before")
    assert (await sends(mail, CUSTOMER)).status_code == 403
    await mail.brings("notes@harbor.example", subject="To somebody else")
    assert (await sends(mail, CUSTOMER)).status_code == 403
    await mail.brings(HELP)
    assert (await sends(mail, CUSTOMER)).status_code == 200
    assert (await sends(mail, "ada@quay.example")).status_code == 403


async def test_an_address_that_writes_a_lot_elsewhere_is_not_looked_up_without_end(
    mail: InboxMail, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its newest mails are looked for in the inbox one by one."""
    inbox = UUID(await mail.inbox(HELP))
    await mail.brings(HELP)
    await mail.brings("notes@harbor.example", subject="2")

    async def has_written() -> bool:
        [found] = await queries.recipients(mail.team.db, inbox, [CUSTOMER])
        return found.has_written

    monkeypatch.setattr(queries, "NEWEST", 2)
    assert await has_written()
    monkeypatch.setattr(queries, "NEWEST", 1)
    assert not await has_written()


async def test_attachments(mail: InboxMail) -> None:
    await mail.inbox(HELP)
    await policy(mail, attachments=False)
    answer = await sends(mail, attachments=[{"content": "aGk=", "filename": "a.txt"}])
    assert told(answer) == (403, "validation_error", "The policy of this inbox does not allow attachments.")
    assert (await sends(mail)).status_code == 200


async def test_a_footer_says_who_writes(mail: InboxMail) -> None:
    await mail.inbox(HELP)
    await policy(mail, footer="Written by a program & <checked>\nby nobody")
    answer = await sends(mail, html="<html><body><p>Hello</p></body></html>")
    sent = (await mail.team.get(f"/emails/{answer.json()['id']}")).json()
    assert sent["text"] == "Hello\n\nWritten by a program & <checked>\nby nobody\n"
    footer = "<p>Written by a program &amp; &lt;checked&gt;<br>by nobody</p>"
    assert sent["html"] == f"<html><body><p>Hello</p>{footer}</body></html>"


async def test_mail_without_words_has_a_footer_too(database_url: str, tmp_path: Path) -> None:
    async with submission(database_url, tmp_path) as (team, listeners):
        await inbox_domain(team)
        await create(team, HELP)
        await team.call("PUT", f"/inboxes/{HELP}/policy", {"footer": "Written by a program."})
        file = (
            f"From: {HELP}\r\nTo: {CUSTOMER}\r\nSubject: Berth 12\r\nContent-Type: application/pdf\r\n"
            "Content-Disposition: attachment; filename=berth.pdf\r\n\r\n%PDF-1.4\r\n"
        )
        async with listeners.program(team.token) as client:
            sent = queued_id(await client.send(file.encode(), to=(CUSTOMER,)))
        assert (await team.email(sent))["text"] == "Written by a program.\n"


async def test_replies_alone(mail: InboxMail) -> None:
    """To the people of the message that is answered, and nobody else."""
    inbox = await mail.inbox(HELP)
    await mail.brings(HELP, message_id="<a@customer.example>", headers=["Cc: Bo <bo@quay.example>"])
    await policy(mail, reply_only=True)
    message = "The policy of this inbox allows replies alone: `In-Reply-To` must name a message of the inbox."
    assert told(await sends(mail, CUSTOMER)) == (403, "validation_error", message)
    unknown = {"In-Reply-To": "<b@customer.example>"}
    assert (await sends(mail, CUSTOMER, headers=unknown)).status_code == 403
    known = {"In-Reply-To": "<a@customer.example>"}
    assert (await sends(mail, CUSTOMER, cc="bo@quay.example", headers=known)).status_code == 200
    message = (
        f"The policy of this inbox allows replies to the people of a message alone. {EVE} is not one of them."
    )
    assert told(await sends(mail, CUSTOMER, bcc=EVE, headers=known)) == (403, "validation_error", message)
    [thread] = await mail.threads(inbox)
    [email] = await mail.emails(inbox, thread)
    path = f"/inboxes/{HELP}/threads/{thread['id']}/emails/{email['id']}"
    assert (await mail.team.post(f"{path}/reply", {"text": "Yes", "cc": EVE})).status_code == 403
    assert (await mail.team.post(f"{path}/forward", {"to": EVE})).status_code == 403
    assert (await mail.team.post(f"{path}/reply", {"text": "Yes", "reply_all": True})).status_code == 200


async def test_messages_of_an_hour_and_a_day(mail: InboxMail) -> None:
    """They are counted before they are stored: no race sends more."""
    await mail.inbox(HELP)
    await policy(mail, messages_per_hour=3)
    answers = await asyncio.gather(*[sends(mail) for _ in range(8)])
    assert sorted([answer.status_code for answer in answers]) == [200] * 3 + [429] * 5
    last = await sends(mail)
    assert told(last) == (
        429,
        "rate_limit_exceeded",
        "The policy of this inbox allows 3 messages in one hour.",
    )
    assert 0 < int(last.headers["retry-after"]) <= 3601
    await policy(mail, messages_per_day=3)
    last = await sends(mail)
    assert last.json()["message"] == "The policy of this inbox allows 3 messages in one day."
    assert 0 < int(last.headers["retry-after"]) <= 86_401


async def test_clocks_that_differ_begin_no_new_count(mail: InboxMail) -> None:
    """Of two processes one may be in the next hour already, and a clock that is put right goes back."""
    inbox = UUID(await mail.inbox(HELP))
    db, hour, day = mail.team.db, datetime(2026, 10, 3, 23, tzinfo=UTC), datetime(2026, 10, 3, tzinfo=UTC)
    next_hour, next_day = hour + timedelta(hours=1), day + timedelta(days=1)
    for limit in ("messages_per_hour", "messages_per_day"):
        await policy(mail, **{limit: 3})
        counted = [
            await queries.spend(db, inbox, *times) for times in [(hour, day), (next_hour, next_day)] * 4
        ]
        # The first one of the new hour begins its count.
        assert counted == [True] * 4 + [False] * 4, limit
        later = day + timedelta(days=30)
        assert await queries.spend(db, inbox, later, later)
        assert await queries.spend(db, inbox, hour, day), "a clock that was far ahead blocks nobody"
        await mail.team.db.run("UPDATE inbox_policies SET hour_at = NULL, day_at = NULL WHERE team_id = $1")


async def test_batches(mail: InboxMail) -> None:
    await mail.inbox(HELP)
    await policy(mail, may_write_to="listed", allowed_recipients=[CUSTOMER], messages_per_hour=2)
    items = [
        {"from": HELP, "to": to, "subject": "Berth 12", "text": "Hello"}
        for to in (CUSTOMER, EVE, CUSTOMER, CUSTOMER)
    ]
    strict = await mail.team.post("/emails/batch", items)
    assert strict.status_code == 403
    assert (await mail.team.get("/emails")).json()["data"] == []
    await policy(mail, may_write_to="listed", allowed_recipients=[CUSTOMER], messages_per_hour=3)
    answer = await mail.team.post("/emails/batch", items, **{"x-batch-validation": "permissive"})
    # The first item of the strict batch has counted.
    assert (len(answer.json()["data"]), [one["index"] for one in answer.json()["errors"]]) == (2, [1, 3])


async def test_drafts_and_forwards(mail: InboxMail) -> None:
    inbox = await mail.inbox(HELP)
    await mail.brings(HELP)
    await policy(mail, may_write_to="who_wrote_before")
    made = await mail.team.post(f"/inboxes/{HELP}/drafts", {"to": EVE, "subject": "Hi", "text": "Secret"})
    draft = f"/inboxes/{HELP}/drafts/{made.json()['id']}"
    assert (await mail.team.post(f"{draft}/send")).status_code == 403
    assert (await mail.team.get(draft)).json()["email_id"] is None
    [thread] = await mail.threads(inbox)
    [email] = await mail.emails(inbox, thread)
    path = f"/inboxes/{HELP}/threads/{thread['id']}/emails/{email['id']}"
    assert (await mail.team.post(f"{path}/forward", {"to": EVE})).status_code == 403
    assert (await mail.team.post(f"{path}/reply", {"text": "Yes"})).status_code == 200
    assert (await mail.team.call("PATCH", draft, {"to": CUSTOMER})).status_code == 200
    assert (await mail.team.post(f"{draft}/send")).status_code == 200


async def test_what_needs_a_person_is_not_sent_by_a_key(mail: InboxMail) -> None:
    await mail.inbox(HELP)
    await mail.brings(HELP)
    await policy(mail, approval="unknown_recipients")
    assert (await sends(mail, CUSTOMER)).status_code == 200
    message = (
        "The policy of this inbox wants a person to send this email. "
        "Save it as a draft, which a person can read and send."
    )
    assert told(await sends(mail)) == (403, "validation_error", message)
    await policy(mail, approval="always", applies_to="everybody")
    assert (await sends(mail, CUSTOMER)).status_code == 403


async def test_answers_to_suspicious_messages_need_a_person(mail: InboxMail) -> None:
    inbox = await mail.inbox(HELP)
    await policy(mail, approval="suspicious")
    await mail.brings(HELP, message_id="<a@customer.example>")
    await mail.team.db.run("UPDATE message_trust SET level = 'known' WHERE team_id = $1")
    [thread] = await mail.threads(inbox)
    [email] = await mail.emails(inbox, thread)
    path = f"/inboxes/{HELP}/threads/{thread['id']}/emails/{email['id']}"
    assert (await mail.team.post(f"{path}/reply", {"text": "Yes"})).status_code == 200
    await mail.team.db.run("UPDATE message_trust SET level = 'suspicious' WHERE team_id = $1")
    assert (await mail.team.post(f"{path}/reply", {"text": "Yes"})).status_code == 403
    assert (await mail.team.post(f"{path}/forward", {"to": EVE, "text": "See"})).status_code == 403
    assert (await sends(mail)).status_code == 200


async def test_a_suspicious_message_without_an_id_needs_a_person_too(mail: InboxMail) -> None:
    """Who writes it decides whether it has one that can be named."""
    inbox = await mail.inbox(HELP)
    await policy(mail, approval="suspicious")
    await mail.brings(HELP)
    await mail.team.db.run("UPDATE message_trust SET level = 'suspicious' WHERE team_id = $1")
    [thread] = await mail.threads(inbox)
    [email] = await mail.emails(inbox, thread)
    path = f"/inboxes/{HELP}/threads/{thread['id']}/emails/{email['id']}"
    answer = {"thread_id": thread["id"], "reply_to_email_id": email["id"], "text": "Yes", "to": CUSTOMER}
    made = await mail.team.post(f"/inboxes/{HELP}/drafts", answer)
    refused = [
        await mail.team.post(f"{path}/reply", {"text": "Yes"}),
        await mail.team.post(f"{path}/forward", {"to": EVE, "text": "See"}),
        await mail.team.post(f"/inboxes/{HELP}/drafts/{made.json()['id']}/send"),
    ]
    assert [answer.status_code for answer in refused] == [403] * 3
    await mail.team.db.run("UPDATE message_trust SET level = 'known' WHERE team_id = $1")
    assert (await mail.team.post(f"{path}/reply", {"text": "Yes"})).status_code == 200


async def test_a_key_for_the_inbox_cannot_get_round_its_policy(mail: InboxMail) -> None:
    inbox = await mail.inbox(HELP)
    await policy(mail, may_write_to="who_wrote_before", reply_only=True)
    rights = ["read", "label", "draft", "send"]
    made = await mail.team.post("/api-keys", {"name": "agent", "inbox_id": inbox, "rights": rights})
    agent = mail.team.using(made.json()["token"])
    assert (await agent.get(f"/inboxes/{HELP}/policy")).json()["reply_only"] is True
    assert (await agent.call("PUT", f"/inboxes/{HELP}/policy", {})).status_code == 403
    draft = await agent.post(f"/inboxes/{HELP}/drafts", {"to": EVE, "subject": "Hi", "text": "Secret"})
    sent = await agent.post(f"/inboxes/{HELP}/drafts/{draft.json()['id']}/send")
    assert (sent.status_code, EVE in sent.json()["message"]) == (403, True)
    await mail.brings(HELP, message_id="<a@customer.example>")
    [thread] = await mail.threads(inbox)
    [email] = await mail.emails(inbox, thread)
    path = f"/inboxes/{HELP}/threads/{thread['id']}/emails/{email['id']}"
    assert (await agent.post(f"{path}/reply", {"text": "Yes", "bcc": EVE})).status_code == 403
    assert (await agent.post(f"{path}/forward", {"to": EVE})).status_code == 403
    assert (await mail.team.get("/emails")).json()["data"] == []
    assert (await agent.post(f"{path}/reply", {"text": "Yes"})).status_code == 200


async def test_a_policy_for_programs_leaves_people_alone(mail: InboxMail) -> None:
    """Who sends on the dashboard is a person; a key that acts for one, a grant and the server are not."""
    await mail.inbox(HELP)
    accept, team = mail.team.world.app.need(Accept), mail.team
    body = {"from": HELP, "to": EVE, "subject": "Berth 12", "text": "Hello"}
    made = outgoing(body, team.world.clock.now())
    person = Caller(team.id, 1, None, Permission.FULL, person_id=uuid4())
    others = [
        Caller(team.id, 1, None, Permission.FULL),
        Caller(team.id, 1, uuid4(), Permission.FULL, person_id=uuid4()),
        Caller(team.id, 1, None, Permission.FULL, grant_id=uuid4(), person_id=uuid4()),
    ]
    await policy(mail, may_write_to="listed", approval="always")
    assert (await accept.check(person, made)).outgoing is made
    for other in others:
        with pytest.raises(RecipientRefused):
            await accept.check(other, made)
    await policy(mail, may_write_to="listed", applies_to="everybody")
    with pytest.raises(RecipientRefused):
        await accept.check(person, made)
    await policy(mail, approval="always", applies_to="everybody")
    assert (await accept.check(person, made)).outgoing is made


async def test_submission_by_smtp(database_url: str, tmp_path: Path) -> None:
    async with submission(database_url, tmp_path) as (team, listeners):
        await inbox_domain(team)
        await create(team, HELP)
        listed = {"may_write_to": "listed", "allowed_recipients": [CUSTOMER], "messages_per_hour": 1}
        assert (await team.call("PUT", f"/inboxes/{HELP}/policy", listed)).status_code == 200
        text = message_bytes(sender=HELP, to=CUSTOMER)

        async def submitted(*to: str) -> SmtpReply:
            async with listeners.program(team.token) as client:
                return await client.send(text, to=to)

        refused = await submitted(CUSTOMER, EVE)
        assert (refused.code, refused.text.split()[0]) == (550, "5.7.1")
        assert EVE in refused.text
        queued_id(await submitted(CUSTOMER))
        assert (await submitted(CUSTOMER)).code == 451


async def test_a_domain_that_is_not_ascii_is_the_same_in_both_spellings(mail: InboxMail) -> None:
    inbox, iris = await mail.inbox(HELP), "iris@b\u00fccher.example"
    await policy(mail, blocked_senders=["b\u00fccher.example"])
    await mail.brings(HELP, sender=iris, envelope_sender=EVE)
    await mail.brings(HELP, sender="iris@xn--bcher-kva.example", envelope_sender=EVE, subject="2")
    assert await mail.threads(inbox) == []
    await policy(mail, may_write_to="who_wrote_before")
    assert (await sends(mail, iris)).status_code == 403
    await mail.brings(HELP, sender=iris, envelope_sender=EVE, subject="3", message_id="<a@x.example>")
    for to in (iris, "iris@xn--bcher-kva.example"):
        await policy(mail, may_write_to="who_wrote_before")
        assert (await sends(mail, to)).status_code == 200
        await policy(mail, reply_only=True)
        assert (await sends(mail, to, headers={"In-Reply-To": "<a@x.example>"})).status_code == 200


async def test_an_inbox_with_a_plus_has_a_policy_of_its_own(mail: InboxMail) -> None:
    await mail.inbox(HELP)
    refunds = "help+refunds@harbor.example"
    inbox = await mail.inbox(refunds)
    await policy(mail, may_write_to="listed", blocked_senders=["customer.example"], blocked_mail="refuse")
    assert (await sends(mail)).status_code == 403
    assert (await sends(mail, **{"from": "help+notes@harbor.example"})).status_code == 403
    assert (await sends(mail, **{"from": refunds})).status_code == 200
    async with asyncio.timeout(5):
        while not (await mail.brings(HELP)).startswith("550"):
            await asyncio.sleep(0.05)
    assert (await mail.brings(refunds)).startswith("250")
    assert len(await mail.threads(inbox)) == 1


async def test_mail_of_blocked_senders_is_spam(mail: InboxMail) -> None:
    inbox = await mail.inbox(HELP)
    await mail.inbox("desk@harbor.example")
    await policy(mail, blocked_senders=["customer.example"])
    assert (await mail.brings(HELP, "desk@harbor.example", shown_to=HELP)).startswith("250")
    assert await mail.threads(inbox) == []
    assert len(await mail.threads(inbox, "?folder=spam")) == 1
    assert len(await mail.threads("desk@harbor.example")) == 1
    await mail.brings(HELP, sender="ada@quay.example", envelope_sender="lists@customer.example", subject="2")
    assert len(await mail.threads(inbox, "?folder=spam")) == 2
    await policy(mail, allowed_senders=["ada@quay.example"])
    await mail.brings(HELP, sender="bo@quay.example", envelope_sender="ada@quay.example", subject="3")
    assert len(await mail.threads(inbox, "?folder=spam")) == 3
    await mail.brings(HELP, sender="ada@quay.example", subject="4")
    assert [thread["subject"] for thread in await mail.threads(inbox)] == ["4"]


async def test_an_inbox_for_the_operator_refuses_nobody(mail: InboxMail) -> None:
    """SMTP-16: who is told of trouble hears of it from everybody."""
    refusing = {"blocked_senders": ["customer.example"], "blocked_mail": "refuse"}
    for name in (HELP, "postmaster@harbor.example", "abuse@harbor.example"):
        await mail.inbox(name)
        await mail.team.call("PUT", f"/inboxes/{name}/policy", refusing)
    async with asyncio.timeout(5):
        while not (await mail.brings(HELP)).startswith("550"):
            await asyncio.sleep(0.05)
    for name in ("Postmaster@harbor.example", "abuse@harbor.example"):
        assert (await mail.brings(name, subject=name)).startswith("250")
        assert len(await mail.threads(name.lower(), "?folder=spam")) == 1


async def test_an_erased_person_leaves_no_open_list(mail: InboxMail) -> None:
    """An empty list of allowed senders allows everybody."""
    inbox = await mail.inbox(HELP)
    await policy(mail, allowed_senders=["ada@quay.example"], allowed_recipients=["ada@quay.example"])
    assert await erase_listed(mail.team.db, "ada@quay.example", ERASED_ADDRESS) == 1
    shown = (await mail.team.get(f"/inboxes/{HELP}/policy")).json()
    assert (shown["allowed_senders"], shown["allowed_recipients"]) == ([ERASED_ADDRESS], [])
    await mail.brings(HELP, sender=EVE)
    assert await mail.threads(inbox) == []
    fields = {name: value for name, value in shown.items() if name not in ("object", "updated_at")}
    assert (await policy(mail, **fields))["allowed_senders"] == [ERASED_ADDRESS]


async def test_blocked_senders_are_refused_at_rcpt(mail: InboxMail) -> None:
    """A bounce has no sender, and is never refused; what only From names is spam."""
    inbox = await mail.inbox(HELP)
    await policy(mail, blocked_senders=["customer.example"], blocked_mail="refuse")
    for address in (HELP, "Help+refund@harbor.example"):
        answer = await mail.brings(address)
        assert answer == "550 5.7.1 This address takes no mail from this sender", answer
    assert (await mail.brings("notes@harbor.example", subject="1")).startswith("250")
    assert (await mail.brings(HELP, sender="ada@quay.example", subject="2")).startswith("250")
    assert (await mail.brings(HELP, envelope_sender="", subject="3")).startswith("250")
    assert [thread["subject"] for thread in await mail.threads(inbox)] == ["2"]
    assert [thread["subject"] for thread in await mail.threads(inbox, "?folder=spam")] == ["3"]
