"""Values that try to be more than a value, from the API to the mail that arrives: as templates.md section 5
says, by where the value comes from and which part it goes into.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from kit.audience import a_segment
from kit.broadcasts import made, sent
from kit.client import error
from kit.manual_world import parsed, relayed_world, run_jobs
from kit.smtp_sink import Sink
from kit.world import Team, mail

VALUES = [
    "{{{EMAIL}}} {{{contact.last_name|Crew}}}",
    "{{{PILLARBOX_UNSUBSCRIBE_URL}}}",
    "{{{FIRST_NAME",
    "}}} | }}}}",
    "<script>alert('tide')</script>",
    '"><img src=x onerror=alert(1)> & co',
    "&lt;b&gt; &amp;amp;",
    "Ada\r\nBcc: eve@evil.example\r\n\r\nbody",
    "\u202etxet\u202c \u200fright\u200f",
    "\u2067isolate\u2069 Zoë 🚢",
    "line\u2028separator\u2029 tab\tend",
    "=?utf-8?q?coded?= .\r\n.\r\nQUIT",
]
"""Placeholders, markup, line ends, marks that turn the writing round, encoded words, the end of a message."""

SPACES = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


@pytest.fixture
@asynccontextmanager
async def harbor(database_url: str, tmp_path: Path) -> AsyncIterator[tuple[Team, Sink]]:
    async with relayed_world(database_url, tmp_path, public_url="https://mail.harbor.example") as (
        world,
        sink,
    ):
        team = await world.team()
        await team.domain()
        yield team, sink


def bodies(message: EmailMessage) -> dict[str, str]:
    """The HTML between its marks, and the text."""
    found = {
        part.get_content_type(): part.get_content() for part in message.walk() if not part.is_multipart()
    }
    return {kind: lines(text) for kind, text in found.items()}


def lines(text: str) -> str:
    """A text with line ends as one sign: mail has CRLF for each."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def in_subject(value: str) -> str:
    """As a subject has it once it is unfolded: no line end, and blanks as one."""
    return " ".join(SPACES.sub(" ", value).split())


@pytest.mark.parametrize("value", VALUES)
async def test_a_value_of_a_contact(harbor: tuple[Team, Sink], value: str) -> None:
    """Escaped in html and in the preview text, raw in the text, without line ends in the subject; never read
    again. The preview, the mail that arrives and the email that is shown agree."""
    team, sink = harbor
    segment = str(await a_segment(team))
    new = {"email": "ada@quay.example", "last_name": value, "segments": [{"id": segment}]}
    assert (await team.post("/contacts", new)).status_code == 201
    name = (await team.get("/contacts/ada@quay.example")).json()["last_name"]
    broadcast_id = await made(
        team,
        segment,
        subject="S[{{{LAST_NAME}}}]E",
        html='<p title="{{{LAST_NAME}}}">[{{{contact.last_name}}}]</p>',
        text="[{{{LAST_NAME}}}]",
        preview_text="P[{{{LAST_NAME}}}]",
    )
    answer = await team.post(f"/broadcasts/{broadcast_id}/preview", {"contact": "ada@quay.example"})
    assert answer.status_code == 200, answer.text
    preview = answer.json()
    await sent(team, broadcast_id)
    await run_jobs(team.world)
    await team.world.turn()
    [message] = await sink.messages(1)
    arrived = parsed(message)
    escaped = html.escape(name)
    for found in (preview, {"html": bodies(arrived)["text/html"], "text": bodies(arrived)["text/plain"]}):
        assert f'<p title="{lines(escaped)}">[{lines(escaped)}]</p>' in lines(found["html"])
        assert lines(found["text"]).strip() == f"[{lines(name)}]".strip()
        assert "<script" not in found["html"]
    assert html.escape(" ".join(f"P[{name}]".split())) in preview["html"]
    for subject in (preview["subject"], str(arrived["subject"])):
        assert in_subject(subject) == in_subject(f"S[{name}]E")
    assert not re.search(r"[\r\n\0]", preview["subject"])
    assert arrived["bcc"] is None
    assert message.recipients == ["ada@quay.example"]
    [copy] = (await team.get(f"/broadcasts/{broadcast_id}/recipients?type=sent")).json()["data"]
    assert copy["email"] == "ada@quay.example"


@pytest.mark.parametrize("value", VALUES)
async def test_a_value_of_the_sender(harbor: tuple[Team, Sink], value: str) -> None:
    """A variable of a template is the sender's own: raw in html, and never read again."""
    team, sink = harbor
    template = {
        "name": "Tides",
        "subject": "S[{{{WHO}}}]E",
        "html": "<p>[{{{WHO}}}]</p>",
        "text": "[{{{WHO}}}]",
        "variables": [{"key": "WHO", "type": "string"}],
    }
    answer = await team.post("/templates", template)
    assert answer.status_code == 201, answer.text
    template_id = answer.json()["id"]
    assert (await team.post(f"/templates/{template_id}/publish")).status_code == 200
    wanted = mail(to="bo@quay.example", template={"id": template_id, "variables": {"WHO": value}})
    for name in ("subject", "html", "text"):
        wanted.pop(name, None)
    accepted = await team.post("/emails", wanted)
    assert accepted.status_code == 200, accepted.text
    await team.world.turn()
    [message] = await sink.messages(1)
    arrived, shown = parsed(message), await team.email(accepted.json()["id"])
    assert lines(bodies(arrived)["text/html"]).strip() == f"<p>[{lines(value)}]</p>"
    assert lines(shown["html"]) == f"<p>[{lines(value)}]</p>"
    assert lines(bodies(arrived)["text/plain"]).strip() == f"[{lines(value)}]"
    assert in_subject(str(arrived["subject"])) == in_subject(f"S[{value}]E")
    assert not re.search(r"[\r\n\0]", shown["subject"])
    assert (message.recipients, arrived["bcc"]) == (["bo@quay.example"], None)


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("/contacts", {"email": "ada@quay.example", "first_name": "@"}),
    ("/broadcasts", {"segment_id": "@", "from": "a@harbor.example", "subject": "@", "html": "@"}),
    ("/templates", {"name": "Tides", "html": "@"}),
    ("/emails", {"from": "a@harbor.example", "to": "b@quay.example", "subject": "@", "text": "@"}),
]


@pytest.mark.parametrize(("path", "body"), REFUSED)
@pytest.mark.parametrize("broken", ["\\ud800", "\\udc00\\ud800", "\ud83d"])
async def test_half_a_character_is_no_text(
    harbor: tuple[Team, Sink], path: str, body: dict[str, Any], broken: str
) -> None:
    """A lone surrogate, escaped or as bytes, is no JSON: 400, and nothing is written."""
    team, _ = harbor
    content = json.dumps(body).replace("@", broken, 1).encode(errors="surrogatepass")
    answer = await team.http.post(path, content=content)
    assert error(answer)[:2] == (400, "validation_error")
    for table in ("contacts", "broadcasts", "templates", "emails"):
        assert await team.world.pool.fetchval(f"SELECT count(*) FROM {table}") == 0
