"""Hostile content in every column that strangers can write: it is text at every screen, and never markup.

Screens come from the table, columns from the database, query parameters from the routes, and links of each
screen are followed, so that new ones are in it by themselves.
"""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec
import pytest
from markupsafe import escape

from kit.builders import BUILDERS
from kit.hostile_rows import MARKUP, HostilePage, Written, mark_of, write_everywhere
from kit.manual_world import clock_of
from kit.people import an_operator, logged_in
from kit.screens import address_of, some_domains, some_mail, table
from kit.world import Team, World
from pillarbox.application import SLICES
from pillarbox.dashboard.frame.code_samples import FILES, FORM, ApiExample, samples_of
from pillarbox.dashboard.frame.layout import POLICY
from pillarbox.dashboard.pages import SCREEN_TEXT, cut, screen_text
from pillarbox.kernel.http.openapi import JSON
from pillarbox.timeline.rules import ClickDetail, EventDetail

LARGEST: Final = 200_000
"""Octets of a page, whatever is in it."""

MANY: Final = 41
"""More rows than a list shows on one page."""

OF_A_KIND: Final = 3
"""Links of a screen that differ by their ids alone and are followed."""

IDS: Final = re.compile(r"[0-9a-f-]{36}")
HERE: Final = ("/dashboard", "/team", "/account", "/design")
MADE: Final = (  # noqa: SIM905 (prose reads better as prose)
    "api_key_id suppression topic_id segment_id template contact contact_property_id broadcast_id inbox "
    "thread_id draft_id automation_id oauth_grant_id identifier"
).split()
"""Things of other slices, which the search finds, or which have no screen yet."""

NOT_SHOWN: Final = frozenset(
    """
    attachments.cid attachments.url broadcast_variants.html
    broadcast_variants.preview_text broadcast_variants.text broadcasts.domain_name captured.mail_from
    captured.recipients captured.sender captured.subject
    contacts.address contact_bulk_acts.search
    contents.preview_text contents.sender contents.subject deliveries.last_host deliveries.last_reply
    domains.records form_sign_ups.address form_sign_ups.content form_sign_ups.network
    inbox_draft_attachments.content_type inbox_messages.message_id inbox_messages.searched
    message_trust.domain message_trust.reasons metric_increments.domain_name oauth_clients.client_uri
    oauth_clients.logo_uri oauth_clients.name oauth_clients.redirect_uris oauth_grants.client_id
    processes.host received_attachments.content_id received_attachments.disposition received_emails.client
    received_emails.mail_from received_emails.recipients received_emails.spam_reason
    suppressions.address
    """.split()  # noqa: SIM905 (prose reads better as prose)
)
"""Columns that reach no screen. One that does is taken from this list; one that does not says so here. Of
`processes.host` eight characters are shown."""


async def some_of_everything(team: Team) -> None:
    await some_mail(team)
    await some_domains(team)
    made: dict[str, str] = {}
    for name in MADE:
        made[name] = await BUILDERS[name](team, made)
    to = ["a@quay.example", "b@quay.example"]
    one = {"from": "hello@harbor.example", "to": to, "subject": "x", "text": "x"}
    assert (await team.post("/emails/batch", [one] * MANY)).status_code == 200
    for number in range(MANY):
        await team.post("/suppressions", {"email": f"x{number}@quay.example"})


async def a_full_email(team: Team) -> str:
    """Send an email with all that it can have; every event has all facts."""
    email_id = await team.send(
        to="bounced@resend.dev",
        cc=["c@quay.example"],
        bcc=["d@quay.example"],
        reply_to=["e@quay.example"],
        html="<p>x</p>",
        headers={"X-Berth": "12"},
        tags=[{"name": "kind", "value": "order"}],
        attachments=[{"filename": "a.txt", "content": "aGk="}],
    )
    while await team.world.turn():
        pass
    click = ClickDetail("192.0.2.1", "https://x.example/", team.world.clock.now(), "agent")
    facts = EventDetail(
        host="mx", code=550, enhanced="5.1.1", reply="no", reason="x", tls="x", machine="m", click=click
    )
    detail = msgspec.json.encode(facts).decode()
    await team.db.run("UPDATE timeline SET detail = $2::text::json WHERE team_id = $1", detail)
    return email_id


def questions() -> list[str]:
    """Return every page with a hostile value in each parameter of its address."""
    return [
        f"{route.path}?{name}={quote(mark_of('query', name.lower()) + MARKUP)}"
        for entry in SLICES
        for route in entry.pages
        if route.method == "GET" and is_ours(route.path) and "{" not in route.path
        for name in route.query
    ]


def is_mail(path: str) -> bool:
    """Whether it is the document of a frame with a mail, which may have styles."""
    return path.partition("?")[0].endswith("/html")


def is_ours(link: str) -> bool:
    return link.startswith(HERE) and not link.startswith("/dashboard/live")


async def test_it_is_text_at_every_screen(pillarbox: World) -> None:
    """No element, attribute or link of theirs, nothing computed, no neighbour turned round, no failure."""
    team = await pillarbox.team()
    await some_of_everything(team)
    browser = await logged_in(pillarbox, await an_operator(team, "ada@harbor.example"))
    await browser.send("/team/members", "/team/invitations", email="x@quay.example", role="viewer")
    email_id = await a_full_email(team)
    waiting = [f"/dashboard/emails/{email_id}", *[await address_of(screen, team) for screen in table()]]
    screens = {*waiting, "/account"}
    waiting = [*questions(), *waiting, "/account"]
    written = Written(set(), set())
    reached: set[str] = set()
    faults: list[tuple[str, Any]] = []
    seen, followed = set(waiting), Counter[str]()
    for path in waiting:
        if path in screens and not written.filled:
            written = await write_everywhere(team)
        clock_of(pillarbox).advance(0.1)
        answer = await browser.get(quote(path, safe="/?&=%:@#+;,"))
        statuses = (200,) if path in screens else (200, 303, 404, 422)
        if answer.status_code not in statuses or "Something went wrong" in answer.text:
            faults.append((path, answer.status_code))
        if not answer.headers.get("content-type", "").startswith("text/html"):
            continue
        page = HostilePage(answer.text)
        reached |= page.marks
        faults += [(path, fault) for fault in page.faults if not (is_mail(path) and " style=" in fault)]
        if len(answer.content) > LARGEST:
            faults.append((path, f"{len(answer.content)} octets"))
        if path not in screens:
            continue
        if not path.endswith("/html"):
            assert answer.headers["content-security-policy"] == POLICY, path
        for link in sorted({link.partition("#")[0] for link in page.links if is_ours(link)} - seen):
            followed[IDS.sub("", link)] += 1
            if followed[IDS.sub("", link)] <= OF_A_KIND:
                seen.add(link)
                waiting.append(link)
    assert not faults, "\n".join(f"{path[:200]}: {fault}" for path, fault in faults[:20])
    hidden = {name for name in written.filled if mark_of(*name.split(".")) not in reached}
    assert hidden == NOT_SHOWN, (sorted(hidden - NOT_SHOWN), sorted(NOT_SHOWN - hidden))


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        ("<p><hxe hxa=1></p>", "<hxe>"),
        ("<a onclick=x>", "onclick"),
        ("<a href=' javascript:x'>", "javascript"),
        ("<script>x</script>", "<script>"),
        ("<p>50337</p>", "computed"),
        ("<p style='color: red'>", "style"),
        ("<td>a <b>\u202eb</b></td>", "turns"),
    ],
)
def test_a_fault_is_seen(page: str, fault: str) -> None:
    assert fault in HostilePage(page).faults[0]


@pytest.mark.parametrize(
    "page", ["<td>a <bdi>\u202eb</bdi></td>", "<td>\u202ea</td>", "<a href='/x?to=1'>x</a>"]
)
def test_what_is_right_is_no_fault(page: str) -> None:
    assert HostilePage(page).faults == []


def test_long_texts_are_cut_by_what_they_take() -> None:
    for text in ("a" * 500_000, '"' * 500_000, "é" * 500_000, "a" * 90_000 + '"' * 90_000):
        shown, is_cut = screen_text(text)
        assert is_cut
        assert text.startswith(shown or "no text")
        assert SCREEN_TEXT * 0.4 < len(escape(shown or "").encode()) <= SCREEN_TEXT
    assert screen_text("short") == ("short", False)
    assert len(cut("W" * 2000)) == 201


BODY: Final[dict[str, Any]] = {
    "subject": f"{MARKUP}'; rm -rf x #",
    "tags": [{"name": MARKUP}],
    "to": "@/etc/passwd",
}
CALLS: Final = (
    ApiExample("POST", "/emails", {}, BODY),
    ApiExample("GET", "/emails", {"subject": BODY["subject"]}, None),
    ApiExample("POST", "/contacts", {}, BODY),
    ApiExample("GET", f"/contacts/{BODY['subject']}", {}, None),
    ApiExample("POST", "/oauth/token", {}, {"name": BODY["subject"]}, media=FORM),
    ApiExample("POST", "/contacts/imports", {}, {"file": "x"}, media=FILES),
)
WORDS: Final = {
    ("GET", JSON): 4,
    ("POST", JSON): 10,
    ("POST", FORM): 8,
    ("POST", FILES): 8,
}
"""How many words the shell sees."""


@pytest.mark.parametrize("call", CALLS, ids=range(len(CALLS)))
def test_code_that_is_copied_is_quoted_and_as_it_looks(call: ApiExample, tmp_path: Path) -> None:
    [sample] = samples_of([call], "https://mail.harbor.example")
    printed = subprocess.run(
        ["bash", "-c", f'curl() {{ printf "%s\\0" curl "$@"; }}; {sample.curl}'],
        env={"RESEND_API_KEY": "key", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        timeout=60,
        check=True,
    )
    words = printed.stdout.decode().split("\0")[:-1]
    assert len(words) == WORDS[call.method, call.media]
    if call.media == FORM:
        assert words[-1] == f"name={call.body['name']}"
    elif call.body and call.media == JSON:
        assert json.loads(words[-1]) == call.body
    assert len(ast.parse(sample.python).body) <= 4
    for code in (sample.title, sample.curl, sample.python, sample.node):
        assert "\u202e" not in code
        assert "\u2066" not in code
    if node := shutil.which("node"):
        script = tmp_path / "sample.mjs"
        script.write_text(sample.node)
        command = [node, "--check", str(script)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
