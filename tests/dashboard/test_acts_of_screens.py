"""What people do on screens is in the log of acts: made from the pages, so a new form is in it by itself."""

from __future__ import annotations

import json
from html import unescape
from typing import Any, Final
from uuid import UUID, uuid4

import msgspec
import pytest

from dashboard.test_page_rights import asked_of_members, path_in
from kit.automation_rows import an_automation, lone_trigger
from kit.inboxes import inbox_domain
from kit.people import a_person, an_operator, logged_in
from kit.screens import newest_thread
from kit.world import Team, World
from pillarbox.dashboard.automations.drafts import draft_of
from pillarbox.dashboard.frame.visit import Visit as SeenVisit
from pillarbox.documents.theme import Theme
from pillarbox.kernel.http.routing import Route
from pillarbox.people.audit import Act

ONE_EMAIL: Final = "/dashboard/emails/{email_id}/"
HTML: Final = "<p>Twelve lanterns.</p>"
CONDITIONS: Final = "/dashboard/segments/{segment_id}/conditions"
A_MESSAGE: Final = {"to": "x@quay.example", "subject": "Lanterns", "text": "They shine."}
FIELDS: Final[dict[str, dict[str, Any]]] = {
    "/team/name": {"name": "Quay"},
    "/team/members/{member_id}/role": {"role": "viewer"},
    "/team/invitations": {"email": "x@quay.example", "role": "viewer"},
    "/team/keys": {"name": "printer", "permission": "full_access"},
    CONDITIONS: {
        "conditions": '{"type": "rule", "field": "contact.unsubscribed", "operator": "eq", "value": false}'
    },
    "/dashboard/unsubscribe-page": {"button_color": "#123456"},
    "/dashboard/installation/queue/pause": {"domain": "quay.example"},
    "/dashboard/installation/queue/resume": {"domain": "quay.example"},
    "/dashboard/installation/teams/{team_id}/limits": {"daily_quota": "100", "monthly_quota": "2000"},
    "/dashboard/webhooks": {"endpoint": "https://hooks.harbor.example/in", "event": "email.bounced"},
    "/dashboard/webhooks/{webhook_id}/edit": {
        "endpoint": "https://hooks.harbor.example/new",
        "event": "email.bounced",
    },
    "/dashboard/webhooks/{webhook_id}/status": {"status": "disabled"},
    "/dashboard/webhooks/{webhook_id}/test": {"kind": "email.bounced"},
    "/dashboard/webhooks/{webhook_id}/replay": {"period": "30d"},
    "/dashboard/domains/add": {"name": "pier.example", "custom_return_path": "send", "sending": "on"},
    "/dashboard/domains/{domain_id}/settings": {"open_tracking": "on", "sending": "on"},
    "/dashboard/templates": {"start": "blocks"},
    "/dashboard/templates/{template_id}/block": {"operation": "add", "place": "0", "type": "divider"},
    "/dashboard/templates/{template_id}/content": {"subject": "Twelve lanterns"},
    "/dashboard/templates/{template_id}/settings": {"name": "Lanterns"},
    "/dashboard/templates/{template_id}/test": {"to": "delivered@resend.dev"},
    "/dashboard/mail-theme": {**msgspec.to_builtins(Theme(accent="#123456"))},
    "/dashboard/suppressions/add": {"addresses": "ada@quay.example, ben@quay.example"},
    "/dashboard/topics/new": {
        "name": "Tides",
        "default_subscription": "opt_in",
        "visibility": "public",
    },
    "/dashboard/topics/{topic_id}": {"name": "Moon", "visibility": "public"},
    "/dashboard/contact-properties/new": {"key": "orders", "type": "number", "fallback": "1"},
    "/dashboard/contacts/{contact_id}/edit": {"first_name": "Ann"},
    "/dashboard/contacts/{contact_id}/subscription": {"unsubscribed": "yes"},
    "/dashboard/automations/{automation_id}/edit": {"name": "Other"},
    "/dashboard/automations/{automation_id}/status": {"status": "disabled"},
    "/dashboard/automations/import": {"json": json.dumps({"name": "New", **lone_trigger()})},
    "/dashboard/automations/new": {"do": "save", "name": "New", "draft": draft_of(lone_trigger()).packed()},
    "/dashboard/automations/recipes": {"name": "welcome"},
    "/dashboard/automations/{automation_id}/source": {
        "do": "overwrite",
        "json": json.dumps({"name": "Other", **lone_trigger()}),
    },
    "/dashboard/events/new": {"name": "user.signed_up", "schema": "plan: string"},
    "/dashboard/events/{definition_id}/schema": {"do": "overwrite", "schema": "plan: string"},
    "/dashboard/events/send": {"name": "user.signed_up", "to": "ada@quay.example"},
    "/dashboard/personal-data/erase": {"address": "x@quay.example", "typed_name": "x@quay.example"},
    "/dashboard/send": {
        "from": "hello@harbor.example",
        "to": "ada@quay.example",
        "subject": "Hello",
        "text": "Hello.",
        "key": str(uuid4()),
    },
    "/dashboard/contacts/new": {"email": "ada@quay.example"},
    "/dashboard/segments/new": {"name": "Crew"},
    "/dashboard/segments/{segment_id}": {"name": "Other crew"},
    "/dashboard/forms/new": {"name": "News", "from": "Harbor <hello@harbor.example>"},
    "/dashboard/forms/{form_id}/edit": {"name": "Weekly", "from": "Harbor <hello@harbor.example>"},
    "/dashboard/contacts/imports/new/{upload_id}": {"to_0": "email", "consent_note": "At the fair."},
    "/dashboard/inboxes/{inbox_id}/settings": {"name": "Help desk", "from_name": "Mina"},
    "/dashboard/inboxes/{inbox_id}/labels": {"label": "Berths", "color": "#112233"},
    "/dashboard/inboxes/{inbox_id}/labels/{label_id}": {"name": "Berths", "color": "#112233"},
    "/dashboard/inboxes/{inbox_id}/threads/{thread_id}/assignee": {"email": ""},
    "/dashboard/inboxes/{inbox_id}/threads/{thread_id}/emails/{message_id}/forward": {"to": "x@quay.example"},
    **dict.fromkeys(
        [
            "/dashboard/inboxes/{inbox_id}/new-message",
            "/dashboard/inboxes/{inbox_id}/new-message/send",
            "/dashboard/inboxes/{inbox_id}/drafts/{draft_id}",
            "/dashboard/inboxes/{inbox_id}/drafts/{draft_id}/send",
        ],
        A_MESSAGE,
    ),
    "/dashboard/request": {
        "operation": "post-suppressions",
        "confirmed": "yes",
        "body": '{"email": "ada@quay.example"}',
    },
}
"""The fields of forms that need some."""

FIRST: Final = {
    "/dashboard/installation/queue/resume": "/dashboard/installation/queue/pause",
    "/dashboard/installation/teams/{team_id}/unblock": "/dashboard/installation/teams/{team_id}/block",
}
"""Forms that are sent before: what they do is undone."""

CHANGES_NOTHING: Final = {
    "/dashboard/unsubscribe-page/html": "shows a page",
    "/dashboard/webhooks/signature": "checks a signature",
    "/dashboard/automations/{automation_id}/simulate": "shows what would be",
    "/dashboard/automations/{automation_id}/versions/open": "shows the editor",
    "/dashboard/mail-theme/html": "shows a mail",
    "/dashboard/broadcasts/{broadcast_id}/editor/html": "shows a mail",
    "/dashboard/templates/{template_id}/html": "shows a mail",
    "/dashboard/broadcasts/{broadcast_id}/links": "asks servers for links; the draft stays as it is",
    "/dashboard/broadcasts/{broadcast_id}/editor/links": "asks servers for links; the draft stays as it is",
    "/dashboard/templates/{template_id}/links": "asks servers for links; the template stays as it is",
    "/dashboard/inboxes/{inbox_id}/threads/{thread_id}/seen": "marks as read; the log has no views",
    "/dashboard/first-steps/hide": "is about one person's overview",
    "/dashboard/forms/try": "shows a preview",
    "/dashboard/contacts/imports/new": "stores a file, which nothing is made of yet",
    "/dashboard/contacts/imports/new/{upload_id}/discard": "removes a file that nothing was made of",
}
ELSEWHERE: Final = {
    **dict.fromkeys(
        [
            "/dashboard/broadcasts",
            *(
                f"/dashboard/broadcasts/{{broadcast_id}}/{step}"
                for step in ("content", "pace", "test", "copy", "send", "resume", "winner", "delete")
            ),
        ],
        "tests/dashboard/test_broadcast_screens.py",
    ),
    "/dashboard/broadcasts/{broadcast_id}/editor/save": "tests/dashboard/test_template_screens.py",
    "/dashboard/broadcasts/{broadcast_id}/editor/block": "tests/dashboard/test_template_screens.py",
    "/dashboard/broadcasts/{broadcast_id}/editor/content": "tests/dashboard/test_template_screens.py",
    "/dashboard/images": "tests/documents/test_pictures.py",
    "/dashboard/templates/{template_id}/save": "tests/dashboard/test_template_screens.py",
    "/dashboard/templates/{template_id}/restore": "tests/dashboard/test_template_screens.py",
    "/dashboard/installation/queue/retry": "tests/dashboard/test_installation_screens.py",
    "/dashboard/installation/queue/drop": "tests/dashboard/test_installation_screens.py",
    "/team/keys/{api_key_id}/keep": "tests/oauth",
    "/dashboard/domains/claim": "tests/people/test_acts_of_callers.py",
    "/dashboard/domains/{domain_id}/claim/verify": "like the check of a domain",
}
"""Forms that need what other tests make."""


GROUPED: Final = "is committed with others, in a group"
BY_ITSELF: Final = "the document is stored by a transaction of its own, after a thread has drawn it"

BESIDE: Final = {
    "/dashboard/send": GROUPED,
    "/dashboard/templates/{template_id}/test": GROUPED,
    "/dashboard/emails/resend": GROUPED,
    "/dashboard/events/send": GROUPED,
    "/dashboard/installation/examination/doctor": "begins in this process, and changes nothing",
    "/dashboard/installation/examination/verify": "as above",
    "/dashboard/templates/{template_id}/block": BY_ITSELF,
    "/dashboard/templates/{template_id}/content": BY_ITSELF,
    **dict.fromkeys(
        [
            "/dashboard/inboxes/{inbox_id}/new-message",
            "/dashboard/inboxes/{inbox_id}/new-message/send",
            "/dashboard/inboxes/{inbox_id}/drafts/{draft_id}",
            "/dashboard/inboxes/{inbox_id}/drafts/{draft_id}/send",
            "/dashboard/inboxes/{inbox_id}/drafts/{draft_id}/discard",
            "/dashboard/inboxes/{inbox_id}/threads/{thread_id}/emails/{message_id}/answer",
            "/dashboard/inboxes/{inbox_id}/threads/{thread_id}/emails/{message_id}/forward",
        ],
        "drafts are stored and sent by transactions of their own",
    ),
    "/dashboard/images/{image_id}/remove": "the file is removed after its row",
    "/dashboard/contacts/{contact_id}/topics": "nothing was chosen, so nothing is changed",
}
"""Forms whose line is written after what it tells of, and why."""

NAMED: Final = tuple(
    f"{{{name}}}/{act}"
    for name in (
        *("webhook_id", "domain_id", "automation_id", "contact_id", "topic_id", "contact_property_id"),
        *("template_id", "form_id", "segment_id", "inbox_id"),
    )
    for act in ("delete", "erase")
)
"""Forms that ask for the name of the thing."""


async def what_is_chosen(team: Team, path: str) -> dict[str, Any]:
    """Return the fields of a form that is about things of the team."""
    if path == "/dashboard/emails/cancel" or path.startswith(ONE_EMAIL):
        email_id = await team.send(to="ada@quay.example", html=HTML, scheduled_at="in 3 days")
        return {"id": email_id, "scheduled_at": "in 4 days"}
    if path == "/dashboard/emails/resend":
        return {"id": await team.send(to="ada@quay.example", html=HTML), "key": str(uuid4())}
    if path == "/dashboard/suppressions/remove":
        return {"id": (await team.post("/suppressions", {"email": "x@quay.example"})).json()["id"]}
    if path == "/dashboard/contacts/bulk":
        contact = (await team.post("/contacts", {"email": "ada@quay.example"})).json()["id"]
        return {"id": contact, "action": "unsubscribe", "confirmed": "yes"}
    if path.startswith("/dashboard/contacts/{contact_id}/segments"):
        return {"segment": (await team.post("/segments", {"name": "Buyers"})).json()["id"]}
    if path == "/dashboard/inboxes/new":
        await inbox_domain(team)
        return {"local": "help", "domain": "harbor.example"}
    if path == "/dashboard/automations/{automation_id}/edit":
        return {**FIELDS[path], "do": "overwrite", "draft": draft_of(lone_trigger()).packed()}
    return FIELDS.get(path, {})


async def typed_name(team: Team, route: Route, path: str) -> dict[str, str]:
    """Return what is typed before something is deleted."""
    if route.path.endswith("{import_id}/undo"):
        return {"typed_name": "<b>people.csv"}
    if not route.path.endswith(NAMED):
        return {}
    answer = (await team.get(path.removeprefix("/dashboard").rpartition("/")[0])).json()
    return {
        "typed_name": next(
            answer[name] for name in ("endpoint", "email", "email_address", "key", "name") if name in answer
        )
    }


FORMS: Final = [
    route
    for route, _ in asked_of_members()
    if route.method == "POST" and route.path not in {**CHANGES_NOTHING, **ELSEWHERE}
]


@pytest.mark.parametrize("route", FORMS, ids=lambda route: route.path)
async def test_each_form_leaves_a_line_with_the_one_who_sent_it(
    pillarbox: World, route: Route, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line is written in the transaction of what it tells of, but for the forms of `BESIDE`."""
    beside = []
    record = SeenVisit.record

    async def noted(visit: SeenVisit, what: Act, *, team_id: UUID | None) -> None:
        beside.append(what)
        await record(visit, what, team_id=team_id)

    monkeypatch.setattr(SeenVisit, "record", noted)
    team = await pillarbox.team()
    person = await an_operator(team, f"{uuid4().hex[:8]}@harbor.example")
    browser = await logged_in(pillarbox, person)
    fields = await what_is_chosen(team, route.path)
    path = await path_in(team, route)
    if route.path.startswith(ONE_EMAIL):
        path = route.path.format(email_id=fields["id"])
    fields = {**fields, **await typed_name(team, route, path)}
    if route.path == "/dashboard/inboxes/{inbox_id}/threads":
        fields = {"id": str((await newest_thread(team)).id), "do": "archive"}
    if route.path == CONDITIONS:
        drawn = (await browser.get(path)).text
        fields["before"] = unescape(drawn.partition('name="before" value="')[2].partition('"')[0])
    await browser.get("/account")
    if before := FIRST.get(route.path):
        await browser.post(path.replace(route.path.rpartition("/")[2], before.rpartition("/")[2]), **fields)
    known = await lines(pillarbox, person.email)
    answer = await browser.post(path, **fields)
    assert answer.status_code in (200, 303), answer.text[-2000:]
    new = [line for line in await lines(pillarbox, person.email) if line not in known]
    assert len(new) == 1, (route.path, new, answer.headers.get("location"), answer.text[-1500:])
    assert bool(beside) == (route.path in BESIDE), route.path


def dies_before_the_commit(patch: pytest.MonkeyPatch) -> None:
    """Let the process fail behind the line of an act."""
    write = SeenVisit._write_line

    async def broken(visit: SeenVisit, *args: Any) -> None:
        await write(visit, *args)
        raise RuntimeError("the process died before the commit")

    patch.setattr(SeenVisit, "_write_line", broken)


async def test_an_act_and_its_line_are_kept_together_or_not_at_all(
    pillarbox: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = await pillarbox.team()
    person = await a_person(team, "ada@harbor.example")
    browser = await logged_in(pillarbox, person)
    await browser.get("/account")
    known = await lines(pillarbox, person.email)
    with monkeypatch.context() as patch:
        dies_before_the_commit(patch)
        answer = await browser.post("/dashboard/segments/new", name="Crew")
    assert answer.status_code == 500
    assert (await team.get("/segments")).json()["data"] == []
    assert await lines(pillarbox, person.email) == known
    assert (await browser.post("/dashboard/segments/new", name="Crew")).status_code == 303
    (segment,) = (await team.get("/segments")).json()["data"]
    (line,) = [line for line in await lines(pillarbox, person.email) if line not in known]
    assert line[1] == "segment.created"
    target = await pillarbox.pool.fetchval("SELECT target FROM audit_entries WHERE id = $1", UUID(line[0]))
    assert target == segment["id"]


async def test_an_automation_is_enabled_with_its_line_or_not_at_all(
    pillarbox: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = await pillarbox.team()
    person = await a_person(team, "ada@harbor.example")
    browser = await logged_in(pillarbox, person)
    automation = await an_automation(team)
    here = f"/dashboard/automations/{automation}"
    base = unescape((await browser.get(here)).text.partition('name="base" value="')[2].partition('"')[0])
    known = await lines(pillarbox, person.email)
    with monkeypatch.context() as patch:
        dies_before_the_commit(patch)
        answer = await browser.post(f"{here}/status", status="enabled", base=base)
    assert answer.status_code == 500
    assert (await team.get(f"/automations/{automation}")).json()["status"] == "disabled"
    assert await lines(pillarbox, person.email) == known
    assert (await browser.post(f"{here}/status", status="enabled", base=base)).status_code == 303
    (line,) = [line for line in await lines(pillarbox, person.email) if line not in known]
    assert line[1] == "automation.changed"


async def test_a_refused_form_leaves_no_line(pillarbox: World) -> None:
    team = await pillarbox.team()
    person = await an_operator(team, f"{uuid4().hex[:8]}@harbor.example")
    browser = await logged_in(pillarbox, person)
    await browser.get("/account")
    known = await lines(pillarbox, person.email)
    assert (await browser.post("/dashboard/suppressions/add", addresses="nobody")).status_code == 422
    request = {"operation": "get-suppressions", "confirmed": "yes"}
    assert (await browser.post("/dashboard/request", **request)).status_code == 200
    assert await lines(pillarbox, person.email) == known


async def lines(here: World, email: str) -> list[tuple[str, str]]:
    """Return the acts in all teams of the person with this address, with their ids."""
    rows = await here.pool.fetch("SELECT id, what FROM audit_entries WHERE actor = $1 ORDER BY id", email)
    return [(str(row["id"]), row["what"]) for row in rows]
