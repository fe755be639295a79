"""What input is expanded into (rendered, quoted, cleaned, composed) costs others nothing (API-09, STR-01).

Each case sends its worst legal input through the API. No turn of the event loop may take long, and no request
much processor time. Times are processor times, so other work of the machine does not count.
"""

from __future__ import annotations

import ast
import asyncio
import gc
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kit.automation_rows import an_automation, chain, step
from kit.automation_runs import a_template, sent, walk
from kit.inbox_rows import Inbox
from kit.manual_world import manual_world, run_jobs
from kit.sources import tree_of
from kit.world import Team
from pillarbox.worker import tune_garbage_collector

SOURCE = Path(__file__).parents[2] / "src" / "pillarbox"

LOOP = 0.020
REQUEST = 1.0
SLACK = 3.0
"""On a busy machine the same work takes more processor time."""

MIB = 1024 * 1024
LINK = "<a href='https://quay.example/a?b=c&d=e'>tide &amp; time</a> "
HTML = f"<p>{(LINK * 150_000)[: 9 * MIB]}</p>"
DEEP = "<div>" * 60_000 + "x"
CONTACT = "{{{contact.first_name|x}}}"
KEYS = [f"V{number}" for number in range(50)]
VALUES = dict.fromkeys(KEYS, "é<" * 1000)
PLACES = "".join("{{{" + KEYS[number % 50] + "}}}" for number in range(1000))

EXPANDERS = {
    "emails/requests/parse.py": "links, nesting",
    "emails/broadcast_copies/parts.py": "broadcast",
    "delivery/composing.py": "links, broadcast",
    "emails/raw_mail/messages.py": "links, nesting",
    "receiving/rows.py": "received",
    "receiving/reading.py": "received",
    "templates/mail.py": "template, batch, automation",
    "inboxes/sending/message.py": "reply",
    "inboxes/sending/forwarded.py": "forward",
    "inboxes/messages/reading.py": "received",
    "inboxes/trust/hidden_words.py": "received, in a thread where it is large",
    "inboxes/messages/safe_texts.py": "received",
    "inboxes/drafts/wire.py": "draft",
    "inboxes/search/searched_text.py": "a job that describes messages, in batches",
    "contacts/commands/render_template.py": "a command of the operator",
    "inboxes/commands/threads.py": "a command of the operator",
    "emails/insights/rules.py": "insights of one stored email, in a thread",
    "broadcasts/documents/storing.py": "documents, as of a template",
    "documents/safe_html.py": "documents",
    "documents/text_part.py": "documents",
    "dashboard/editor/edited_thing.py": "documents, in a thread",
    "dashboard/editor/mail_checks.py": "what a document became, in the thread that renders it",
    "broadcasts/preview/checks.py": "the checks of a draft, by the insights of emails, in a thread",
    "documents/link_checks/mail_links.py": "links of a draft, in a thread",
    "dashboard/links.py": "a page of links, of fixed texts",
    "dashboard/mail_html.py": "the page of capture, of one mail for its operator",
}
"""Modules that expand what others sent, and the case that tries it or why none does."""

FUNCTIONS = {
    *("rendered", "text_of", "tracked", "compose", "compose_pieces", "extracted_text", "nested", "preview"),
    *("plain_text", "cids", "safe_text", "hidden_text", "instructions"),
}


@pytest.fixture(autouse=True)
def _collected_as_in_a_worker() -> Iterator[None]:
    """The objects of the test session are not gone through."""
    before = gc.get_threshold()
    tune_garbage_collector()
    yield
    gc.set_threshold(*before)


def test_every_expander_is_tried() -> None:
    """A new user of these functions belongs into `EXPANDERS`, with a case of its worst legal input."""
    users = set()
    for path in sorted(SOURCE.rglob("*.py")):
        module = str(path.relative_to(SOURCE))
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ImportFrom) and not module.startswith("mail/"):
                named = {alias.name for alias in node.names} & FUNCTIONS
                if named and (node.module or "").startswith(("pillarbox.mail.", "pillarbox.broadcasts")):
                    users.add(module)
    assert users == EXPANDERS.keys()


@asynccontextmanager
async def bounded(name: str, *, requests: int = 1) -> AsyncIterator[None]:
    """Fail where a turn of the loop, or all of it, takes too much processor time."""
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        before = time.thread_time()
        while True:
            # Not at every turn: that would take more processor time than what is watched.
            await asyncio.sleep(0.001)
            now = time.thread_time()
            longest, before = max(longest, now - before), now

    watching = asyncio.create_task(watch())
    begun = time.process_time()
    await asyncio.sleep(0)
    try:
        yield
    finally:
        watching.cancel()
    spent = time.process_time() - begun
    assert longest < LOOP * SLACK, f"{name}: the loop was held for {longest * 1000:.0f} ms"
    assert spent < REQUEST * SLACK * requests, f"{name}: {spent:.2f} s of processor time"


async def ask(team: Team, path: str, body: Any, method: str = "POST") -> dict[str, Any]:
    """Send a body whose encoding is not measured."""
    content = json.dumps(body).encode()
    headers = {"content-type": "application/json"}
    async with bounded(f"{method} {path}"):
        answer = await team.world.client(team.token).request(method, path, content=content, headers=headers)
    assert answer.status_code < 300, answer.text[:300]
    return dict(answer.json())


@pytest.fixture
@asynccontextmanager
async def team(database_url: str, tmp_path: Path) -> AsyncIterator[Team]:
    async with manual_world(database_url, tmp_path) as pillarbox:
        team = await pillarbox.team()
        await team.domain()
        await team.send()
        await pillarbox.turn()
        yield team


def mail(**fields: Any) -> dict[str, Any]:
    return {"from": "a@harbor.example", "to": "b@quay.example", "subject": "Tide", **fields}


@pytest.mark.parametrize("html", [HTML, DEEP], ids=["links", "nesting"])
async def test_html_of_mail(team: Team, html: str) -> None:
    email = await ask(team, "/emails", mail(html=html))
    async with bounded("delivery"):
        await team.world.turn()
    async with bounded("raw source"):
        raw = (await team.get(f"/emails/{email['id']}/raw")).json()
        message = await team.http.get("/files/" + raw["download_url"].rpartition("/")[2])
    assert message.status_code == 200
    assert len(message.content) > len(html)


async def test_templates_of_mail_and_of_batches(team: Team) -> None:
    """A batch has the most that its budget allows."""
    variables = [{"key": key, "type": "string"} for key in KEYS]
    template = await a_template(team, html=PLACES, variables=variables)
    item = mail(template={"id": template, "variables": VALUES})
    await ask(team, "/emails", item)
    async with bounded("delivery"):
        await team.world.turn()
    await ask(team, "/emails/batch", [item] * 6)


async def test_templates_that_are_changed_and_sent(team: Team) -> None:
    fields = {"name": "Big", "from": "a@harbor.example", "subject": "Tide"}
    template = (await ask(team, "/templates", {**fields, "html": HTML}))["id"]
    await ask(team, f"/templates/{template}", {"html": HTML[: 8 * MIB]}, "PATCH")
    await ask(team, f"/templates/{template}/publish", {})
    await ask(team, f"/templates/{template}/duplicate", {})
    mail_step = step("hello", "send_email", template={"id": template})
    graph = chain(step("start", "trigger", event_name="user.came"), mail_step)
    await an_automation(team, graph, status="enabled")
    await sent(team, "user.came", "ada@quay.example")
    async with bounded("automation", requests=2):
        await walk(team.world)


@pytest.mark.parametrize(
    "document",
    [
        {"kind": "blocks", "blocks": [{"type": "html", "html": LINK * 200}] * 10},
        {"kind": "markdown", "text": "*a **b " * 28_000},
        {"kind": "mjml", "source": f"<mjml><mj-body>{'<mj-section></mj-section>' * 4900}</mj-body></mjml>"},
        {"kind": "html", "html": DEEP},
    ],
    ids=["blocks", "emphasis", "elements", "nesting"],
)
async def test_documents(team: Team, document: dict[str, Any]) -> None:
    fields = {"name": "Big", "from": "a@harbor.example", "subject": "Tide", "html": "<p>x</p>"}
    template = (await team.post("/templates", fields)).json()["id"]
    content = json.dumps({"document": document}).encode()
    headers = {"content-type": "application/json"}
    async with bounded("document", requests=2):
        answer = await team.world.client(team.token).put(
            f"/templates/{template}/document", content=content, headers=headers
        )
    assert answer.status_code == 200, answer.text[:300]


async def test_broadcasts_and_their_previews(team: Team) -> None:
    segment = (await team.post("/segments", {"name": "All"})).json()["id"]
    for number in range(2):
        contact = {"email": f"c{number}@quay.example", "first_name": "<é>" * 80}
        await team.post("/contacts", {**contact, "segments": [{"id": segment}]})
    html = CONTACT * 990 + HTML[: 8 * MIB] + "{{{RESEND_UNSUBSCRIBE_URL}}}"
    fields = {"name": "Tides", "from": "a@harbor.example", "subject": CONTACT, "segment_id": segment}
    broadcast = (await ask(team, "/broadcasts", {**fields, "html": html}))["id"]
    await ask(team, f"/broadcasts/{broadcast}/preview", {"contact": "c0@quay.example"})
    await ask(team, f"/broadcasts/{broadcast}/send", {})
    async with bounded("start of the broadcast"):
        await run_jobs(team.world)
    async with bounded("copies", requests=2):
        await team.world.turn()


def received(html: str) -> bytes:
    head = "From: Iris <iris@customer.example>\r\nTo: help@harbor.example\r\nSubject: Tide\r\n"
    kind = "MIME-Version: 1.0\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
    lines = [html[at : at + 900] for at in range(0, len(html), 900)]
    return (head + kind + "\r\n".join(lines) + "\r\n").encode()


@pytest.mark.parametrize("html", [HTML[: 4 * MIB], "<blockquote>" * 20_000 + "x"], ids=["links", "nesting"])
async def test_received_mail_that_is_read_answered_and_forwarded(inbox: Inbox, html: str) -> None:
    thread = await inbox.thread()
    email_id = await thread.received(received(html))
    client = inbox.team.world.client(inbox.team.token)
    url = f"{thread.url}/emails/{email_id}"
    async with bounded("read"):
        assert (await client.get(url)).status_code == 200
    async with bounded("safe text", requests=2):
        assert (await client.get(f"{url}/safe-text")).status_code == 200
    await ask(inbox.team, f"{url}/reply", {"html": HTML[: 4 * MIB]})
    await ask(inbox.team, f"{url}/forward", {"to": "ben@quay.example", "html": HTML[:MIB]})
    draft = {"type": "new", "to": ["ben@quay.example"], "subject": "Tide", "html": HTML[: 8 * MIB]}
    await ask(inbox.team, f"{inbox.url}/drafts", draft)
