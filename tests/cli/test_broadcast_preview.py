"""`pillarbox broadcasts preview`: the message that a contact would get, without a running server."""

from __future__ import annotations

import asyncio
from email.parser import BytesParser
from email.policy import default
from typing import Any

import pytest

from cli.conftest import Installation
from kit.audience import a_contact, a_segment, joins
from kit.broadcasts import made
from kit.world import world


@pytest.fixture
def draft(empty: Installation) -> str:
    """The id of a broadcast to one contact."""

    async def build() -> str:
        async with world(empty.url, empty.folder, started=False) as pillarbox:
            team = await pillarbox.team()
            await team.domain()
            segment, contact = await a_segment(team), await a_contact(team, "ada@quay.example")
            await joins(team, segment, [contact])
            answer = await team.call("PATCH", f"/contacts/{contact}", {"first_name": "Ada"})
            assert answer.status_code == 200, answer.text
            return await made(team, segment, preview_text="High water")

    return asyncio.run(build())


def test_the_message_is_printed_as_it_would_go_out(empty: Installation, draft: str) -> None:
    done = empty.run("broadcasts", "preview", draft, "--contact", "Ada@Quay.example")
    assert done.exit_code == 0, done.output + done.stderr
    mail: Any = BytesParser(policy=default).parsebytes(done.stdout_bytes)
    assert (mail["to"], mail["subject"]) == ("ada@quay.example", "Ada, the tides of October")
    assert mail["dkim-signature"]
    assert mail["list-unsubscribe-post"] == "List-Unsubscribe=One-Click"
    assert "Hello Ada" in mail.get_body(("plain",)).get_content()
    assert "High water" in mail.get_body(("html",)).get_content()
    shown = empty.json("broadcasts", "preview", draft, "--contact", "ada@quay.example")
    assert (shown["object"], shown["to"], shown["email_id"]) == (
        "broadcast_preview",
        "ada@quay.example",
        None,
    )
    assert empty.sql("SELECT id FROM emails") == []


@pytest.mark.parametrize(
    ("broadcast", "contact", "says"),
    [
        (None, "nobody@quay.example", "Contact not found"),
        (None, "ada", "'ada' is no address."),
        ("0199a3b0-2c41-7d10-8b52-3e9a6f04c711", "ada@quay.example", "There is no broadcast"),
        ("tides", "ada@quay.example", "tides"),
    ],
)
def test_what_is_wrong_is_one_line(
    empty: Installation, draft: str, broadcast: str | None, contact: str, says: str
) -> None:
    done = empty.run("broadcasts", "preview", broadcast or draft, "--contact", contact)
    assert done.exit_code == 1
    assert done.stderr.startswith("pillarbox: ")
    assert says in done.stderr
