"""Makes, for a team, whatever the path of a route names; for the tests that go through all routes.

What a test needs to know about a route stands in the tables here; a route that lacks an entry fails in
`test_cross_team` with a message that says which.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final
from uuid import UUID, uuid4

from kit.automation_rows import an_automation, chain, sleeping_runs, step
from kit.imports import accepted
from kit.inbox_rows import Inbox, Thread, an_inbox
from kit.mailings import a_mailing, clicked
from kit.programs import a_grant, a_member
from kit.webhooks import hook, publish
from kit.world import Team
from pillarbox.domains.claims import queries as claim_queries
from pillarbox.domains.claims.policy import Status
from pillarbox.domains.claims.queries import ClaimOptions, DomainClaim
from pillarbox.kernel.http.routing import Route
from pillarbox.kernel.ids import Ids
from pillarbox.mail.smtp.intake import ReceivedText
from pillarbox.personal_data import queries as erasures
from pillarbox.receiving.arrival import AcceptedRecipient, Arrival, ArrivalFate
from pillarbox.receiving.receive import MessageReceiver
from pillarbox.timeline.rules import EventKind

MARK = "belongs-to-harbor"
"""Stands in everything that the first team makes, so that it can be looked for in other teams' answers."""

Made = dict[str, str]


async def an_email(team: Team, made: Made) -> str:
    """Make a scheduled email, so that it can be moved and canceled; with an attachment."""
    return await team.send(
        subject=MARK,
        scheduled_at="in 1 hour",
        attachments=[{"content": "aGk=", "filename": f"{MARK}.txt"}],
        tags=[{"name": "team", "value": MARK}],
    )


async def an_attachment(team: Team, made: Made) -> str:
    listed = (await team.get(f"/emails/{made['email_id']}/attachments")).json()
    return str(listed["data"][0]["id"])


async def an_api_key(team: Team, made: Made) -> str:
    return str((await team.post("/api-keys", {"name": MARK})).json()["id"])


async def a_domain(team: Team, made: Made) -> str:
    """Make a domain that the team has claimed from somebody, so that there is a claim to be seen as well."""
    made_domain = (await team.post("/domains", {"name": f"{MARK}-{uuid4().hex[:8]}.example"})).json()
    now = team.world.clock.now()
    claim = DomainClaim(
        id=team.world.app.need(Ids).new(),
        name=made_domain["name"],
        domain_id=UUID(made_domain["id"]),
        token=MARK,
        options=ClaimOptions(
            region="us-east-1",
            return_path="send",
            tracking_subdomain=None,
            open_tracking=False,
            click_tracking=False,
        ),
        status=Status.COMPLETED,
        blocked_reason=None,
        failure_reason=None,
        created_at=now,
        expires_at=now,
        checking_since=None,
        blocked_since=None,
    )
    await claim_queries.insert(team.db, claim)
    return str(made_domain["id"])


async def a_webhook(team: Team, made: Made) -> str:
    """Make a webhook that was told of a domain, in vain so far."""
    made_hook = await hook(team, endpoint=f"https://{MARK}.example/in")
    await publish(team, name=MARK)
    [event] = await made_hook.events()
    await made_hook.attempt(event["id"], 503, MARK)
    return made_hook.id


async def an_event(team: Team, made: Made) -> str:
    """Return an event of a domain, which the webhook that was made before was told of."""
    return str((await team.get(f"/webhooks/{made['webhook_id']}/events")).json()["data"][0]["id"])


def a_message() -> bytes:
    lines = (
        f"From: {MARK}@quay.example",
        f"Subject: {MARK}",
        f"Content-Disposition: attachment; filename={MARK}.txt",
        "Content-Type: text/x-mark",
        "",
        f"hi {uuid4()}",
    )
    return "\r\n".join(lines).encode()


async def a_received_email(team: Team, made: Made) -> str:
    """Make a received email with an attachment."""
    raw = a_message()
    arrival = Arrival(
        client="",
        helo="",
        protocol="LMTP",
        tls=None,
        mail_from="",
        recipients=(AcceptedRecipient(team.id, f"{MARK}@harbor.example"),),
    )
    outcome = await team.world.app.need(MessageReceiver).take(arrival, ReceivedText(raw, None, len(raw)))
    assert outcome.fate is ArrivalFate.STORED
    return str(outcome.ids[0])


async def a_received_attachment(team: Team, made: Made) -> str:
    listed = (await team.get(f"/emails/receiving/{made['email_id']}/attachments")).json()
    return str(listed["data"][0]["id"])


async def a_suppression(team: Team, made: Made) -> str:
    """Put an address on the list."""
    email = f"{MARK}-{uuid4().hex[:8]}@quay.example"
    return str((await team.post("/suppressions", {"email": email})).json()["id"])


async def an_erasure(team: Team, made: Made) -> str:
    """Make an erasure that is done."""
    answer = await team.http.post(f"/personal-data/{MARK}-{uuid4().hex[:8]}@quay.example/erase")
    erasure_id = answer.json()["id"]
    await erasures.end(team.db, UUID(erasure_id), team.world.clock.now())
    return str(erasure_id)


async def a_defined_event(team: Team, made: Made) -> str:
    wanted = {"name": f"{MARK}-{uuid4().hex[:8]}", "schema": {MARK: "string"}}
    return str((await team.post("/events", wanted)).json()["id"])


async def a_form(team: Team, made: Made) -> str:
    """Make a form with somebody who signed up."""
    body = {"name": MARK, "from": "Harbor <hello@harbor.example>", "texts": {"title": MARK}}
    form_id = str((await team.post("/forms", body)).json()["id"])
    form = (await team.get(f"/forms/{form_id}")).json()
    made["email"] = f"{MARK}-{uuid4().hex[:8]}@quay.example"
    await team.world.client(None).post(form["url"], data={"email": made["email"]})
    return form_id


async def a_topic(team: Team, made: Made) -> str:
    wanted = {"name": MARK, "description": MARK, "default_subscription": "opt_in", "visibility": "public"}
    return str((await team.post("/topics", wanted)).json()["id"])


async def an_automation_of(team: Team, made: Made) -> str:
    graph = chain(step("start", "trigger", event_name=MARK), step("wait", "delay", duration="1 day"))
    return await an_automation(team, graph, name=MARK)


async def an_automation_with_a_run(team: Team, made: Made) -> str:
    automation_id = await an_automation_of(team, made)
    await sleeping_runs(team, automation_id, 1)
    return automation_id


async def a_run(team: Team, made: Made) -> str:
    [run_id] = await sleeping_runs(team, made["automation_id"], 1)
    return str(run_id)


async def a_template(team: Team, made: Made) -> str:
    """Make a template that was published, with a draft that is newer."""
    wanted = {
        "name": MARK,
        "alias": f"{MARK}-{uuid4().hex[:8]}",
        "from": f"{MARK}@harbor.example",
        "subject": MARK,
        "html": f"<p>{MARK} {{{{{{MARK}}}}}}</p>",
        "variables": [{"key": "MARK", "type": "string", "fallback_value": MARK}],
    }
    template_id = str((await team.post("/templates", wanted)).json()["id"])
    await team.post(f"/templates/{template_id}/publish")
    await team.call("PATCH", f"/templates/{template_id}", {"text": MARK})
    return template_id


async def a_template_version(team: Team, made: Made) -> str:
    listed = (await team.get(f"/templates/{made['template']}/versions")).json()
    return str(listed["data"][-1]["id"])


async def a_segment(team: Team, made: Made) -> str:
    """Make a segment with a member."""
    segment_id = str((await team.post("/segments", {"name": MARK})).json()["id"])
    await team.post("/contacts", {"email": f"{uuid4().hex[:8]}@quay.example", "segments": [segment_id]})
    return segment_id


async def a_log(team: Team, made: Made) -> str:
    """Return the row of a write, which is there with the write."""
    return str((await team.post("/api-keys", {"name": MARK})).headers["x-request-id"])


async def a_contact(team: Team, made: Made) -> str:
    """Make a contact in a segment (the one that the path names, if it names one before), with a property and
    a choice."""
    key = f"key_{uuid4().hex[:8]}"
    await team.post("/contact-properties", {"key": key, "type": "string"})
    made["topic_id"] = await a_topic(team, made)
    new = {
        "email": f"{MARK}-{uuid4().hex[:8]}@quay.example",
        "first_name": MARK,
        "properties": {key: MARK},
        "segments": [made.get("audience_id") or await a_segment(team, made)],
        "topics": [{"id": made["topic_id"], "subscription": "opt_out"}],
    }
    return str((await team.post("/contacts", new)).json()["id"])


async def a_bulk_act(team: Team, made: Made) -> str:
    body = {"action": "unsubscribe", "contacts": [made.get("contact_id") or str(uuid4())]}
    return str((await team.post("/contacts/bulk-acts", body)).json()["id"])


async def an_import(team: Team, made: Made) -> str:
    """Make an import with a row that failed, whether the file is read here or not."""
    import_id = await accepted(team, f"email\n{MARK}@quay.example\n")
    error = "INSERT INTO contact_import_errors VALUES ($1, $2, $3, 1, $4, 'invalid_email')"
    await team.world.pool.execute(error, team.id, UUID(import_id), team.world.app.need(Ids).new(), MARK)
    return import_id


async def an_ended_import(team: Team, made: Made) -> str:
    import_id = await an_import(team, made)
    await team.world.pool.execute(
        "UPDATE contact_imports SET status = 'completed', completed_at = now() WHERE id = $1", UUID(import_id)
    )
    return import_id


async def a_contact_property(team: Team, made: Made) -> str:
    new = {"key": f"key_{uuid4().hex[:8]}", "type": "string", "fallback_value": MARK}
    return str((await team.post("/contact-properties", new)).json()["id"])


def a_wanted_broadcast(segment_id: str) -> dict[str, Any]:
    return {
        "segment_id": segment_id,
        "from": f"{MARK} <news@harbor.example>",
        "subject": MARK,
        "html": f"<p>{MARK}</p>",
        "name": MARK,
    }


UNDER_TEST: Final = """
    WITH begun AS (
        UPDATE broadcasts SET status = 'queued', queued_at = $3, resolved_at = $3, recipients = 0
         WHERE team_id = $1 AND id = $2
    )
    UPDATE broadcast_plans SET stage = 'deciding', stage_until = $3, next_at = $3
     WHERE team_id = $1 AND broadcast_id = $2
"""


async def a_broadcast(team: Team, made: Made) -> str:
    """Make a broadcast that is a draft."""
    wanted = a_wanted_broadcast(await a_segment(team, made))
    return str((await team.post("/broadcasts", wanted)).json()["id"])


async def a_scheduled_broadcast(team: Team, made: Made) -> str:
    broadcast_id = await a_broadcast(team, made)
    await team.post(f"/broadcasts/{broadcast_id}/send", {"scheduled_at": "in 1 hour"})
    return broadcast_id


async def a_broadcast_with_clicks(team: Team, made: Made) -> str:
    mailing = await a_mailing(team, [f"{MARK}-{uuid4().hex[:8]}@quay.example"], name=MARK)
    at = mailing.started
    opened = clicked(f"https://{MARK}.example/", at)
    await mailing.happens((0, EventKind.SENT, at, None), (0, EventKind.DELIVERED, at, None))
    await mailing.happens((0, EventKind.CLICKED, at, opened))
    return str(mailing.id)


A_PLAN: Final = {
    "canary": {"percent": 5, "minutes": 60},
    "per_hour": 5000,
    "hours": {"start": 9, "end": 18, "time_zone": "Europe/Berlin", "property": "zone"},
    "ab_test": {
        "variants": [{"subject": MARK, "preview_text": MARK}, {"html": MARK, "text": MARK}],
        "percent": 20,
        "winner_by": "opens",
        "minutes": 60,
    },
}


async def a_broadcast_with_a_plan(team: Team, made: Made) -> str:
    broadcast_id = await a_broadcast(team, made)
    await team.call("PUT", f"/broadcasts/{broadcast_id}/plan", A_PLAN)
    return broadcast_id


async def a_broadcast_under_test(team: Team, made: Made) -> str:
    """Make a broadcast that has begun its A/B test."""
    broadcast_id = await a_broadcast_with_a_plan(team, made)
    await team.world.pool.execute(UNDER_TEST, team.id, UUID(broadcast_id), team.world.clock.now())
    return broadcast_id


async def a_paused_broadcast(team: Team, made: Made) -> str:
    broadcast_id = await a_broadcast_under_test(team, made)
    await team.post(f"/broadcasts/{broadcast_id}/pause", {"reason": MARK})
    return broadcast_id


async def a_broadcast_to_preview(team: Team, made: Made) -> str:
    """Make a broadcast, and the contact that the body names."""
    await team.post("/contacts", {"email": f"{MARK}-preview@quay.example", "first_name": MARK})
    return await a_broadcast(team, made)


async def an_inbox_of(team: Team, made: Made) -> str:
    """Make an inbox with a label, which is on the thread that is made in it."""
    inbox = await an_inbox(team, f"{MARK}-{uuid4().hex[:8]}")
    made["label_id"] = await inbox.label(MARK)
    made["inbox_address"] = inbox.address
    return str(inbox.id)


def _inbox(team: Team, made: Made) -> Inbox:
    return Inbox(team, UUID(made["inbox"]), made["inbox_address"])


async def a_thread(team: Team, made: Made) -> str:
    """Make a thread that is assigned to a member of the team."""
    thread = await _inbox(team, made).thread(MARK)
    await thread.put_labels([made["label_id"]])
    made["member"] = f"{MARK}-{uuid4().hex[:8]}@harbor.example"
    member = "INSERT INTO team_members (team_id, id, email, created_at) VALUES ($1, $2, $3, $4)"
    await team.db.run(member, uuid4(), made["member"], team.world.clock.now())
    await team.call("PUT", f"{thread.url}/assignee", {"email": made["member"]})
    return str(thread.id)


async def an_inbox_with_a_thread(team: Team, made: Made) -> str:
    made["inbox"] = await an_inbox_of(team, made)
    await a_thread(team, made)
    return made["inbox"]


async def an_email_of_a_thread(team: Team, made: Made) -> str:
    """Make an email of a thread, with an attachment."""
    thread = Thread(inbox=_inbox(team, made), id=UUID(made["thread_id"]), messages=[])
    return await thread.received(a_message())


async def an_attachment_of_a_thread(team: Team, made: Made) -> str:
    path = "/inboxes/{inbox}/threads/{thread_id}/emails/{email_id}/attachments".format(**made)
    return str((await team.get(path)).json()["data"][0]["id"])


async def a_label(team: Team, made: Made) -> str:
    """Return the label that the inbox has."""
    return made["label_id"]


async def a_draft(team: Team, made: Made) -> str:
    """Make a draft with an attachment, and all that it takes to be sent."""
    body = {"to": f"{MARK}@quay.example", "subject": MARK, "text": MARK}
    files = [{"content": "aGk=", "filename": f"{MARK}.txt"}]
    answer = await team.post(f"/inboxes/{made['inbox']}/drafts", {**body, "attachments": files})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def an_inbox_with_a_draft(team: Team, made: Made) -> str:
    made["inbox"] = await an_inbox_of(team, made)
    await a_draft(team, made)
    return made["inbox"]


async def an_attachment_of_a_draft(team: Team, made: Made) -> str:
    draft = await team.get("/inboxes/{inbox}/drafts/{draft_id}".format(**made))
    return str(draft.json()["attachments"][0]["id"])


async def an_oauth_grant(team: Team, made: Made) -> str:
    return str((await a_grant(team, await a_member(team), name=MARK)).id)


INBOXES = "/inboxes/"

INBOX_BUILDERS: dict[str, Callable[[Team, Made], Awaitable[str]]] = {
    "thread_id": a_thread,
    "email_id": an_email_of_a_thread,
    "attachment_id": an_attachment_of_a_thread,
}
"""The same for paths below `INBOXES`."""

RECEIVED = "/emails/receiving"

RECEIVED_BUILDERS: dict[str, Callable[[Team, Made], Awaitable[str]]] = {
    "email_id": a_received_email,
    "attachment_id": a_received_attachment,
}
"""The same for paths below `RECEIVED`, where the names mean other things."""

ROUTE_BUILDERS: dict[str, Callable[[Team, Made], Awaitable[str]]] = {
    "/contacts/imports/{import_id}/undo": an_ended_import,
    "/broadcasts/{broadcast_id}/cancel": a_scheduled_broadcast,
    "/broadcasts/{broadcast_id}/recipients": a_broadcast_with_clicks,
    "/broadcasts/{broadcast_id}/clicked-links": a_broadcast_with_clicks,
    "/broadcasts/{broadcast_id}/preview": a_broadcast_to_preview,
    "/broadcasts/{broadcast_id}/plan": a_broadcast_with_a_plan,
    "/broadcasts/{broadcast_id}/progress": a_broadcast_under_test,
    "/broadcasts/{broadcast_id}/winner": a_broadcast_under_test,
    "/broadcasts/{broadcast_id}/pause": a_broadcast_under_test,
    "/broadcasts/{broadcast_id}/resume": a_paused_broadcast,
    "/automations/{automation_id}/runs": an_automation_with_a_run,
    "/inboxes/{inbox}/threads": an_inbox_with_a_thread,
    "/inboxes/{inbox}/threads/search": an_inbox_with_a_thread,
    "/inboxes/{inbox}/drafts": an_inbox_with_a_draft,
    "/inboxes/{inbox}/drafts/{draft_id}/attachments/{attachment_id}": an_attachment_of_a_draft,
}
"""The same for single paths, for their last parameter: the state of the thing decides what they do."""

NEEDED_QUERY = {"/broadcasts/{broadcast_id}/recipients": "?type=clicked"}
"""A question for each path that answers nothing without one."""

BUILDERS: dict[str, Callable[[Team, Made], Awaitable[str]]] = {
    "email_id": an_email,
    "attachment_id": an_attachment,
    "api_key_id": an_api_key,
    "domain_id": a_domain,
    "webhook_id": a_webhook,
    "event": an_event,
    "log_id": a_log,
    "suppression": a_suppression,
    "erasure": an_erasure,
    "identifier": a_defined_event,
    "topic_id": a_topic,
    "form_id": a_form,
    "automation_id": an_automation_of,
    "run_id": a_run,
    "segment_id": a_segment,
    "template": a_template,
    "template_version_id": a_template_version,
    "audience_id": a_segment,
    "contact": a_contact,
    "contact_property_id": a_contact_property,
    "bulk_act_id": a_bulk_act,
    "import_id": an_import,
    "broadcast_id": a_broadcast,
    "inbox": an_inbox_of,
    "thread_id": a_thread,
    "label_id": a_label,
    "draft_id": a_draft,
    "oauth_grant_id": an_oauth_grant,
}
"""How to make the thing that a path parameter names; the parameters before it are made already."""

BODIES: dict[tuple[str, str], Any] = {
    ("PATCH", "/emails/{email_id}"): {"scheduled_at": "in 2 hours"},
    ("POST", "/emails/{email_id}/share"): {"expires_in": "1h"},
    ("PATCH", "/api-keys/{api_key_id}"): {"name": "Mine now"},
    ("PATCH", "/domains/{domain_id}"): {"open_tracking": True},
    ("PATCH", "/contacts/{contact}"): {"first_name": "Mine now"},
    ("PATCH", "/contacts/{contact}/topics"): [{"id": "{topic_id}", "subscription": "opt_in"}],
    ("PATCH", "/contact-properties/{contact_property_id}"): {"fallback_value": "Mine now"},
    ("PATCH", "/webhooks/{webhook_id}"): {"events": ["domain.created"]},
    ("PATCH", "/events/{identifier}"): {"schema": {"mine": "number"}},
    ("PATCH", "/topics/{topic_id}"): {"name": "Mine now"},
    ("PATCH", "/forms/{form_id}"): {"name": "Mine now"},
    ("PATCH", "/automations/{automation_id}"): {"name": "Mine now"},
    ("PATCH", "/segments/{segment_id}"): {"name": "Mine now"},
    ("PATCH", "/templates/{template}"): {"name": "Mine now", "html": "Mine now"},
    ("PUT", "/broadcasts/{broadcast_id}/document"): {"document": {"kind": "markdown", "text": "Mine now"}},
    ("PUT", "/templates/{template}/document"): {"document": {"kind": "markdown", "text": "Mine now"}},
    ("PATCH", "/audiences/{audience_id}"): {"name": "Mine now"},
    ("POST", "/audiences/{audience_id}/contacts"): {"email": f"{MARK}-more@quay.example"},
    ("PATCH", "/audiences/{audience_id}/contacts/{contact}"): {"first_name": "Mine now"},
    ("PATCH", "/broadcasts/{broadcast_id}"): {"name": "Mine now"},
    ("POST", "/broadcasts/{broadcast_id}/send"): {"scheduled_at": "in 1 hour"},
    ("PATCH", "/inboxes/{inbox}"): {"name": "Mine now"},
    ("PATCH", "/inboxes/{inbox}/agent"): {"instructions": "Mine now", "actions": ["archive"]},
    ("PUT", "/inboxes/{inbox}/policy"): {"footer": "Mine now"},
    ("POST", "/inboxes/{inbox}/labels"): {"name": f"{MARK} 2"},
    ("PATCH", "/inboxes/{inbox}/labels/{label_id}"): {"name": "Mine now"},
    ("PATCH", "/inboxes/{inbox}/threads/{thread_id}"): {"read": True, "label_id": "{label_id}"},
    ("POST", "/inboxes/{inbox}/threads/{thread_id}/labels"): {"labels": ["{label_id}"]},
    ("PUT", "/inboxes/{inbox}/threads/{thread_id}/labels"): {"labels": ["{label_id}"]},
    ("PUT", "/inboxes/{inbox}/threads/{thread_id}/assignee"): {"email": "{member}"},
    ("POST", "/inboxes/{inbox}/threads/{thread_id}/emails/{email_id}/reply"): {"text": MARK},
    ("POST", "/inboxes/{inbox}/threads/{thread_id}/emails/{email_id}/forward"): {"to": "ada@quay.example"},
    ("POST", "/inboxes/{inbox}/drafts"): {"text": MARK},
    ("PATCH", "/inboxes/{inbox}/drafts/{draft_id}"): {"text": "Mine now"},
    ("POST", "/inboxes/{inbox}/drafts/{draft_id}/send"): {"headers": {"X-Berth": "12"}},
    ("POST", "/broadcasts/{broadcast_id}/preview"): {"contact": f"{MARK}-preview@quay.example"},
    ("PUT", "/broadcasts/{broadcast_id}/plan"): A_PLAN,
    ("POST", "/broadcasts/{broadcast_id}/winner"): {"variant": 1},
    ("POST", "/broadcasts/{broadcast_id}/pause"): {"reason": MARK},
}
"""A valid body for each route with path parameters that declares one; `{name}` in it is what was made of that
name."""


async def made_for(team: Team, entry: Route) -> Made:
    made: Made = {}
    for name in entry.parameters:
        builders = BUILDERS
        if entry.path.startswith(RECEIVED):
            builders = RECEIVED_BUILDERS
        elif entry.path.startswith(INBOXES):
            builders = BUILDERS | INBOX_BUILDERS
        build = ROUTE_BUILDERS.get(entry.path) if name == entry.parameters[-1] else None
        made[name] = await (build or builders[name])(team, made)
    return made


def label(entry: Route) -> str:
    return f"{entry.method} {entry.path}"


def body_of(method: str, path: str, made: Made) -> Any:
    """Return a valid body for a route."""
    return _filled(BODIES.get((method, path), {}), made)


def _filled(value: Any, made: Made) -> Any:
    match value:
        case dict():
            return {name: _filled(inner, made) for name, inner in value.items()}
        case list():
            return [_filled(inner, made) for inner in value]
        case str():
            return value.format(**made)
    return value
