"""A team with something on every screen, and an address for each screen of the table."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine
from datetime import timedelta
from io import BytesIO
from typing import Any, Final
from uuid import UUID, uuid4

from PIL import Image

from kit.automation_rows import an_automation, connection, sleeping_runs, step
from kit.builders import BUILDERS
from kit.clock import ManualClock
from kit.inbox_rows import Inbox, Thread, an_inbox
from kit.mailings import a_mailing, clicked
from kit.people import a_person
from kit.webhooks import hook, publish
from kit.world import Team
from pillarbox.application import SLICES
from pillarbox.contacts.imports.columns import ColumnPositions
from pillarbox.contacts.imports.uploads import ImportUploads, WizardChoices
from pillarbox.dashboard.frame.screen_table import Screen, screens_of
from pillarbox.documents.images import Images
from pillarbox.forms import queries as form_queries
from pillarbox.forms.confirming import Confirmations
from pillarbox.forms.form_links import confirmation_of
from pillarbox.forms.screens import ConfirmationMail
from pillarbox.forms.sign_up_pages import SignUpPages
from pillarbox.forms.submissions import SubmissionOrigin, Submissions, submission_of
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import transaction
from pillarbox.kernel.work.jobs import Jobs
from pillarbox.mail.smtp.intake import ReceivedText
from pillarbox.people.membership import members
from pillarbox.people.roles import TeamRole
from pillarbox.receiving.arrival import AcceptedRecipient, Arrival, ArrivalFate
from pillarbox.receiving.receive import MessageReceiver
from pillarbox.suppressions import changes
from pillarbox.suppressions.changes import SuppressionCause
from pillarbox.timeline.rules import EventKind
from pillarbox.webhooks.publish import Publisher

MARK_ID: Final = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
Builds = Callable[[Team], Coroutine[Any, Any, str]]

HTML: Final = (
    "<h1>Your invoice</h1><p>Thank you for your order of <b>twelve lanterns</b>.</p>"
    '<p><a href="https://harbor.example/invoices/12">Open the invoice</a></p><img src=x onerror=alert(1)>'
)

RECEIVED: Final = b"""\
From: Ada Quill <ada@quay.example>\r
To: hello@harbor.example\r
Subject: Re: Your invoice\r
Date: Sat, 03 Oct 2026 10:15:00 +0200\r
Message-ID: <reply-12@quay.example>\r
MIME-Version: 1.0\r
Content-Type: multipart/mixed; boundary=mixed\r
\r
--mixed\r
Content-Type: multipart/alternative; boundary=alternative\r
\r
--alternative\r
Content-Type: text/plain; charset=utf-8\r
\r
Thank you. Please send twelve more lanterns.\r
--alternative\r
Content-Type: text/html; charset=utf-8\r
\r
<p>Thank you. Please send <b>twelve more</b> lanterns.</p><script>alert(1)</script>\r
<img src=x onerror=alert(1)>\r
--alternative--\r
--mixed\r
Content-Type: application/pdf\r
Content-Disposition: attachment; filename="order.pdf"\r
\r
%PDF-1.7\r
--mixed--\r
"""


def table() -> list[Screen]:
    """Return all screens of the program."""
    return screens_of([route.handler for entry in SLICES for route in entry.pages])


async def some_mail(team: Team) -> list[str]:
    """Make emails with several fates; return their ids, the oldest first."""
    sender = "Harbor <hello@harbor.example>"
    sent = [
        {"to": "ada@quay.example", "subject": "Your invoice", "html": HTML, "text": "Thank you."},
        {"to": "delivered+ben@resend.dev", "subject": "Your order is on its way", "html": HTML},
        {"to": "bounced@resend.dev", "subject": "Password reset", "text": "Follow the link."},
        {"to": "complained@resend.dev", "subject": "News of October", "html": HTML},
        {"to": "nell@quay.example", "subject": "A reminder", "text": "Soon.", "scheduled_at": "in 3 days"},
    ]
    ids = [await team.send(**{"from": sender, **fields}) for fields in sent]
    await team.world.turn()
    await a_received_email(team)
    return ids


async def some_contacts(team: Team) -> None:
    """Make contacts with names, properties and a segment, one of them with markup for a name."""
    await team.post("/contact-properties", {"key": "plan", "type": "string", "fallback_value": "free"})
    segment = (await team.post("/segments", {"name": "Beta testers"})).json()["id"]
    for address, first, last, plan in (
        ("ada.lovelace@quay.example", "Ada", "Lovelace", "pro"),
        ("ben@quay.example", "Ben", None, None),
        (
            "nell-with-a-rather-long-address.at-the-lighthouse@harbor-and-quay.example",
            "<b>Nell</b>",
            None,
            "pro",
        ),
    ):
        body = {"email": address, "first_name": first, "last_name": last, "segments": [segment]}
        await team.post("/contacts", {**body, "properties": {"plan": plan} if plan else None})


async def an_email(team: Team) -> str:
    return await team.send(to="ada@quay.example", subject="Your invoice", html=HTML, text="Thank you.")


async def a_received_email(team: Team) -> str:
    """Make a received email with hostile HTML, a text, a picture and an attachment."""
    recipients = (AcceptedRecipient(team.id, "hello@harbor.example"),)
    arrival = Arrival(
        client="192.0.2.10",
        helo="mx.quay.example",
        protocol="ESMTPS",
        tls=None,
        mail_from="ada@quay.example",
        recipients=recipients,
    )
    raw = RECEIVED.replace(b"<reply", b"<%s.reply" % uuid4().hex[:8].encode())
    outcome = await team.world.app.need(MessageReceiver).take(arrival, ReceivedText(raw, None, len(raw)))
    assert outcome.fate is ArrivalFate.STORED
    return str(outcome.ids[0])


async def a_webhook(team: Team) -> str:
    """Make a webhook with an event that was refused once and taken then."""
    subject = await hook(team, "domain.updated", "email.bounced")
    await publish(team, name="harbor.example", status="verified")
    await publish(team, "email.bounced", email_id=MARK_ID, subject="Your invoice", to=["ben@quay.example"])
    event, later = await subject.events()
    await subject.attempt(event["id"], 503, "<b>busy</b>")
    await subject.attempt(event["id"], 200, '{"ok": true}')
    await subject.ends(event["id"], "success")
    await subject.attempt(later["id"], 0, "connection failed")
    await subject.ends(later["id"], "failed")
    return subject.id


async def an_event(team: Team) -> str:
    """Return the older event of the webhook that was made last."""
    webhook_id = (await team.get("/webhooks?limit=1")).json()["data"][0]["id"]
    return str((await team.get(f"/webhooks/{webhook_id}/events")).json()["data"][-1]["id"])


async def a_log(team: Team) -> str:
    """Return a request that was refused, in the log."""
    answer = await team.post("/emails", {"from": "x", "to": "ada@quay.example", "html": HTML})
    return answer.headers["x-request-id"]


async def a_domain(team: Team) -> str:
    """Make a domain whose records were looked for; each screen has one of its own."""
    name = f"{secrets.token_hex(3)}.quay.example"
    domain = (await team.post("/domains", {"name": name, "tracking_subdomain": "links"})).json()
    await team.http.post(f"/domains/{domain['id']}/verify")
    await team.world.turn()
    return str(domain["id"])


async def some_domains(team: Team) -> None:
    """Make a domain that the mail of `some_mail` comes from, and one with a long name."""
    for name in ("harbor.example", "newsletters-and-announcements.lighthouse-at-the-harbor.example"):
        await team.post("/domains", {"name": name, "capabilities": {"receiving": "enabled"}})


async def a_suppression(team: Team) -> str:
    """Suppress an address with the email that bounced; bounces of the simulator suppress nothing
    by themselves."""
    email_id = await team.send(to=BOUNCED, subject="Your <i>invoice</i>")
    while await team.world.turn():
        pass
    now = team.world.clock.now()
    cause = SuppressionCause(
        team_id=team.id, address=BOUNCED, origin="bounce", source_id=UUID(email_id), at=now
    )
    ids = Ids(team.world.clock)
    async with transaction(team.world.pool) as conn:
        await changes.add(conn, [cause], ids, Publisher(ids))
    return str((await team.get(f"/suppressions/{BOUNCED}")).json()["id"])


BOUNCED: Final = "bounced@resend.dev"


async def a_contact(team: Team) -> str:
    """Make a contact with everything that its page shows."""
    address = f"{uuid4().hex[:8]}@quay.example"
    await team.http.post("/contact-properties", json={"key": "plan", "type": "string"})
    segment = (await team.post("/segments", {"name": "Customers"})).json()["id"]
    topic = await a_topic(team)
    contact = await team.post(
        "/contacts",
        {
            "email": address,
            "first_name": "Ada",
            "last_name": "Quill",
            "properties": {"plan": "lantern"},
            "segments": [{"id": segment}],
            "topics": [{"id": topic, "subscription": "opt_out"}],
        },
    )
    await team.send(to=address, subject="Your invoice", html=HTML)
    return str(contact.json()["id"])


async def a_topic(team: Team) -> str:
    body = {"name": "Tides", "description": "When to leave", "default_subscription": "opt_in"}
    return str((await team.post("/topics", body)).json()["id"])


async def a_property(team: Team) -> str:
    body = {"key": f"plan_{uuid4().hex[:8]}", "type": "string", "fallback_value": "none"}
    return str((await team.post("/contact-properties", body)).json()["id"])


CSV: Final = (
    b"E-mail,Name,<b>Plan</b>,Seats\n"
    b"ada@quay.example,Ada,<i>pro</i>,4\n"
    b"no address,Ben,free,2\n"
    b"nell@quay.example,Nell,pro,12\n"
)
"""A file with contacts: one row fails."""


async def a_form(team: Team) -> str:
    """Make a form with hostile words, somebody who waits, and somebody who confirmed."""
    await team.post("/contact-properties", {"key": "berth", "type": "string"})
    body = {
        "name": "News <b>from the harbor</b>",
        "from": "Harbor <hello@harbor.example>",
        "fields": [
            {"key": "first_name", "label": "Your <i>name</i>", "required": True},
            {"key": "berth", "label": "Your berth"},
        ],
        "topic_ids": [await a_topic(team)],
        "lets_choose_topics": True,
        "texts": {"title": "News <b>from the harbor</b>", "text": "Tides and lanterns, once a month."},
    }
    form_id = str((await team.post("/forms", body)).json()["id"])
    await a_sign_up(team, form_id, f"ben-{uuid4().hex[:8]}@quay.example")
    await a_consent(team, form_id, f"ada-{uuid4().hex[:8]}@quay.example")
    return form_id


async def a_sign_up(team: Team, form_id: str, address: str) -> str:
    """Sign an address up at a form; returns the link of the confirmation mail."""
    db, app, links = team.db, team.world.app, []
    row = await form_queries.find_open(db, UUID(form_id))
    assert row is not None
    form = await app.need(SignUpPages).shown(db, row)

    def mail(url: str) -> ConfirmationMail:
        links.append(url)
        return ConfirmationMail("Confirm", "<p>Confirm</p>", url)

    filled, _ = submission_of(form, [("email", address), ("field_first_name", "<b>Ada</b>")])
    assert filled is not None
    origin = SubmissionOrigin(client="192.0.2.7")
    await app.need(Submissions).take(row, form, filled, origin, "News <b>once</b> a month", mail)
    return links[0]


async def a_consent(team: Team, form_id: str, address: str) -> None:
    """Sign an address up at a form, and click its link."""
    link = confirmation_of((await a_sign_up(team, form_id, address)).rpartition("/")[2])
    assert link is not None
    await team.world.app.need(Confirmations).confirm(link, "192.0.2.8")


async def an_upload(team: Team) -> str:
    """Store a file whose columns nobody has mapped."""

    async def pieces() -> AsyncIterator[bytes]:
        yield CSV

    uploads = team.world.app.need(ImportUploads)
    return str(await uploads.take(team.db, pieces(), "<b>people.csv", "ada@harbor.example"))


async def an_import(team: Team) -> str:
    """Import a file by the wizard, and wait for its end."""
    choices = WizardChoices(
        columns=ColumnPositions(
            {"email": 0, "first_name": 1}, {"plan": (2, "string"), "seats": (3, "number")}
        ),
        is_skip=False,
        segments=[],
        topics={},
        consent_note="They signed up at the <b>fair</b> in May.",
    )
    uploads = team.world.app.need(ImportUploads)
    jobs = team.world.app.need(Jobs)
    import_id = await uploads.start(team.db, UUID(await an_upload(team)), choices)
    async with asyncio.timeout(30):
        while (await team.get(f"/contacts/imports/{import_id}")).json()["completed_at"] is None:
            if isinstance(team.world.clock, ManualClock):
                team.world.clock.advance(0.001)
            await jobs.look()
            await jobs.idle()
    return str(import_id)


async def a_broadcast(team: Team) -> str:
    """Make a broadcast under an A/B test, with copies that were opened, and links that were followed."""
    addresses = [f"{n}-{uuid4().hex[:6]}@quay.example" for n in range(6)]
    started = team.world.clock.now() - timedelta(hours=2)
    mailing = await a_mailing(team, addresses, started=started, name="<b>Tides</b>")
    at, url = mailing.started, "https://harbor.example/tides"
    for number in range(6):
        await mailing.happens((number, EventKind.SENT, at, None), (number, EventKind.DELIVERED, at, None))
    for number in range(3):
        await mailing.happens((number, EventKind.CLICKED, at, clicked(url, at)))
    await team.world.pool.execute(UNDER_TEST, team.id, mailing.id)
    return str(mailing.id)


UNDER_TEST: Final = """
    WITH variants AS (
        INSERT INTO broadcast_variants (team_id, broadcast_id, number, subject)
        VALUES ($1, $2, 1, 'The tides <i>of October</i>'), ($1, $2, 2, 'High water')
    ), planned AS (
        INSERT INTO broadcast_plans (team_id, broadcast_id, plan, stage, stage_until)
        VALUES ($1, $2, '{"per_hour":5000,"test":{"percent":20,"minutes":60,"winner_by":"opens"}}',
                'deciding', now() + interval '1 hour')
    ), waiting AS (
        UPDATE broadcast_recipients r SET wave = 2, variant = 1 + (k.place % 2)::smallint
          FROM (SELECT contact_id, row_number() OVER (ORDER BY contact_id) AS place
                  FROM broadcast_recipients WHERE team_id = $1 AND broadcast_id = $2) AS k
         WHERE r.team_id = $1 AND r.broadcast_id = $2 AND r.contact_id = k.contact_id
    )
    UPDATE broadcasts
       SET status = 'queued', recipients = 20, sent_at = NULL,
           html = '<h1>The tides</h1><p><a href="https://harbor.example/tides">All tides</a>'
                  ' <a href="https://harbor.example/map">Map</a></p><img src=x onerror=alert(1)>'
     WHERE team_id = $1 AND id = $2
"""


async def a_template(team: Team) -> str:
    """Make a template of blocks that was published, and a draft with hostile names in it."""
    made = (await team.post("/templates", {"name": "Order <b>shipped</b>", "html": ""})).json()["id"]
    for text in ("Your lanterns are on their way", "Your <i>twelve</i> lanterns are on their way"):
        await team.call("PUT", f"/templates/{made}/document", {"document": document(text), "subject": text})
        if "<" not in text:
            await team.post(f"/templates/{made}/publish")
    return str(made)


async def a_picture(team: Team) -> str:
    """Store a picture with a hostile text."""
    out = BytesIO()
    Image.new("RGB", (40, 30), "teal").save(out, "PNG")
    image = await team.world.app.need(Images).add(team.db, "lantern.png", "A <b>lantern</b>", out.getvalue())
    return str(image.id)


def document(text: str) -> dict[str, Any]:
    """Return a document with a block of each kind that people use most."""
    return {
        "kind": "blocks",
        "blocks": [
            {"type": "heading", "text": text, "level": 1},
            {"type": "text", "text": "Hello {{{FIRST_NAME|friend}}}, order **{{{ORDER_NO}}}** has left."},
            {"type": "button", "text": "Follow it", "href": "https://harbor.example/{{{ORDER_NO}}}"},
            {"type": "columns", "columns": [[{"type": "text", "text": "Left"}], [{"type": "divider"}]]},
            {"type": "footer", "text": "Harbor", "address": "1 Quay", "unsubscribe": "Unsubscribe"},
        ],
    }


async def an_erasure(team: Team) -> str:
    """Make an erasure that is done."""
    return await BUILDERS["erasure"](team, {})


async def a_member(team: Team) -> str:
    """Make somebody else a member of the team."""
    person = await a_person(team, f"{uuid4().hex[:8]}@quay.example", TeamRole.MEMBER, password=False)
    return str(await members.member_of(team.db, person.id))


async def a_series(team: Team) -> str:
    """Make an automation with two ways that meet, as people write them."""
    rule = {"type": "rule", "field": "event.plan", "operator": "neq", "value": "free"}
    steps = [
        step("start", "trigger", event_name="user.signed_up"),
        step("welcome", "send_email", template={"id": "welcome"}),
        step("begins", "wait_for_event", event_name="user.began", timeout="2 days"),
        step("help", "send_email", template={"id": "first-steps"}),
        step("pays", "condition", **rule),
        step("a-day", "delay", duration="1 day"),
        step("advice", "send_email", template={"id": "advice", "variables": {"PLAN": {"var": "event.plan"}}}),
    ]
    connections = [
        connection("start", "welcome"),
        connection("welcome", "begins"),
        connection("begins", "help", "timeout"),
        connection("begins", "pays", "event_received"),
        connection("pays", "a-day", "condition_met"),
        connection("help", "a-day"),
        connection("a-day", "advice"),
    ]
    return await an_automation(team, {"steps": steps, "connections": connections}, name="Welcome series")


async def a_waiting_run(team: Team) -> str:
    """Make a run of the automation that was made last, which waits for an event."""
    automation_id = (await team.get("/automations?limit=1")).json()["data"][0]["id"]
    [run_id] = await sleeping_runs(team, automation_id, 1)
    for statement in RUN_SO_FAR:
        await team.world.pool.execute(statement, run_id)
    return str(run_id)


RUN_SO_FAR: Final = (
    "UPDATE automation_steps SET status = 'completed', completed_at = started_at WHERE run_id = $1",
    """
    INSERT INTO automation_steps (team_id, run_id, position, status, started_at, completed_at)
    SELECT team_id, run_id, p, CASE p WHEN 1 THEN 'completed' ELSE 'waiting' END,
           started_at + p * '1s'::interval,
           CASE p WHEN 1 THEN started_at + '1s'::interval END
      FROM automation_steps, generate_series(1, 2) AS p WHERE run_id = $1
    """,
    """
    UPDATE automation_work SET position = 2, event_name = 'user.began', waits_from = due_at WHERE run_id = $1
    """,
)
"""A run of `a_series` that has sent its first mail."""


async def a_defined_event(team: Team) -> str:
    """Define an event; return its id."""
    body = {"name": f"order.{uuid4().hex[:6]}", "schema": {"amount": "number", "paid_at": "date"}}
    return str((await team.post("/events", body)).json()["id"])


async def its_team(team: Team) -> str:
    return str(team.id)


async def a_segment(team: Team) -> str:
    """Make a segment that is defined by conditions."""
    condition = {
        "type": "and",
        "rules": [
            {"type": "rule", "field": "contact.unsubscribed", "operator": "eq", "value": False},
            {"type": "rule", "field": "contact.created_at", "operator": "within_days", "value": 30},
        ],
    }
    body = {"name": "Came lately", "conditions": condition}
    return str((await team.post("/segments", body)).json()["id"])


async def a_bulk_act(team: Team) -> str:
    body = {"action": "unsubscribe", "search": "nobody"}
    return str((await team.post("/contacts/bulk-acts", body)).json()["id"])


THREAD: Final = b"""\
From: Iris Vale <iris@customer.example>\r
To: Help <help@harbor.example>, ben@quay.example\r
Cc: nell@quay.example\r
Subject: Re: Twelve lanterns\r
Message-ID: <thread-12@customer.example>\r
MIME-Version: 1.0\r
Content-Type: multipart/mixed; boundary=mixed\r
\r
--mixed\r
Content-Type: multipart/alternative; boundary=alternative\r
\r
--alternative\r
Content-Type: text/plain; charset=utf-8\r
\r
Thank you, they shine. Can I have twelve more?\r
\r
On Friday Harbor wrote:\r
> Your lanterns are on their way.\r
--alternative\r
Content-Type: text/html; charset=utf-8\r
\r
<p>Thank you, they <b>shine</b>. Can I have twelve more?</p><img src="https://customer.example/pixel.png">\r
<script>alert(1)</script><img src=x onerror=alert(1)>\r
<blockquote>Your lanterns are on their way.</blockquote>\r
--alternative--\r
--mixed\r
Content-Type: application/pdf\r
Content-Disposition: attachment; filename="order.pdf"\r
\r
%PDF-1.7\r
--mixed--\r
"""


async def an_inbox_with_threads(team: Team) -> str:
    """Make an inbox with labels and threads, one of them with a hostile subject."""
    inbox = await an_inbox(team, f"help-{uuid4().hex[:8]}")
    label = await inbox.label("Refunds <b>now</b>")
    await inbox.thread("Where is my order?", at=3)
    await inbox.thread("An answer that we have sent", folder="sent", direction="outbound", at=2)
    thread = await inbox.thread("Refund <i>today</i>", is_read=True)
    await thread.put_labels([label])
    return str(inbox.id)


async def newest_inbox(team: Team) -> Inbox:
    """Return the inbox that was made last."""
    inbox = (await team.get("/inboxes?limit=1")).json()["data"][0]
    return Inbox(team, UUID(inbox["id"]), inbox["email_address"])


async def a_conversation(team: Team) -> str:
    """Make a thread of the newest inbox, with messages both ways; the last one has a text, HTML with pictures
    of another server, a quotation and an attachment."""
    inbox = await newest_inbox(team)
    thread = await inbox.thread("Twelve <i>lanterns</i>", at=4, is_read=True)
    await thread.sent(to="iris@customer.example", subject="Twelve lanterns", text="On their way.", at=5)
    raw = THREAD.replace(b"<thread", b"<%s.thread" % uuid4().hex[:8].encode())
    await thread.received(raw, at=6)
    return str(thread.id)


async def newest_thread(team: Team) -> Thread:
    """Return the thread of the newest inbox that had a message last."""
    inbox = await newest_inbox(team)
    return Thread(inbox=inbox, id=UUID((await inbox.listed())[0]), messages=[])


async def its_message(team: Team) -> str:
    """Return the newest message of the newest thread."""
    return str((await (await newest_thread(team)).get("/emails?limit=100")).json()["data"][-1]["id"])


async def its_label(team: Team) -> str:
    return str((await (await newest_inbox(team)).get("/labels")).json()["data"][0]["id"])


async def an_inbox_draft(team: Team) -> str:
    """Make a draft in the newest inbox."""
    body = {"to": "ada@quay.example", "subject": "Your <b>lanterns</b>", "text": "They shine."}
    files = [{"content": "aGk=", "filename": "lantern.txt"}]
    path = f"{(await newest_inbox(team)).url}/drafts"
    return str((await team.post(path, {**body, "attachments": files})).json()["id"])


SUBJECTS: Final[dict[str, Builds]] = {
    "member_id": a_member,
    "team_id": its_team,
    "email_id": an_email,
    "upload_id": an_upload,
    "form_id": a_form,
    "import_id": an_import,
    "received_id": a_received_email,
    "webhook_id": a_webhook,
    "event": an_event,
    "log_id": a_log,
    "domain_id": a_domain,
    "suppression_id": a_suppression,
    "broadcast_id": a_broadcast,
    "contact_id": a_contact,
    "segment_id": a_segment,
    "bulk_act_id": a_bulk_act,
    "topic_id": a_topic,
    "contact_property_id": a_property,
    "automation_id": a_series,
    "run_id": a_waiting_run,
    "definition_id": a_defined_event,
    "template_id": a_template,
    "image_id": a_picture,
    "erasure_id": an_erasure,
    "inbox_id": an_inbox_with_threads,
    "thread_id": a_conversation,
    "message_id": its_message,
    "label_id": its_label,
    "draft_id": an_inbox_draft,
}
"""Makes what a path parameter of a screen names; returns its id."""


async def address_of(screen: Screen, team: Team) -> str:
    """Return a path at which the screen can be seen in this team."""
    path = screen.path
    for name in re.findall(r"{(\w+)}", path):
        path = path.replace(f"{{{name}}}", await SUBJECTS[name](team))
    return path
