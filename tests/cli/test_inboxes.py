"""`pillarbox inboxes`: list, create, show, threads, read and reply."""

from __future__ import annotations

import asyncio

import pytest

from cli.conftest import Installation
from kit.inbox_rows import an_inbox
from kit.inboxes import inbox_domain
from kit.world import world

QUESTION = (
    b"From: Iris Vale <iris@customer.example>\r\nTo: help@harbor.example\r\nSubject: Refund\r\n"
    b"Message-ID: <88.a1@customer.example>\r\n\r\n"
    b"When does it come?\x1b[31m\r\n\r\nOn Mon, Mar 2, 2026 at 10:15 AM Ann <ann@harbor.example> wrote:\r\n"
    b"> Your refund is on its way.\r\n"
)


@pytest.fixture
def desk(empty: Installation) -> Installation:
    """A team with one inbox, in which a customer asks."""
    asyncio.run(fill(empty))
    return empty


async def fill(empty: Installation) -> None:
    async with world(empty.url, empty.folder, started=False) as here:
        team = await here.team("Harbor")
        await inbox_domain(team)
        inbox = await an_inbox(team)
        thread = await inbox.thread("Refund for order 88")
        await thread.received(QUESTION)
        await inbox.thread("Old", at=-5, is_read=True, folder="archive")


def the_thread(desk: Installation) -> str:
    [thread] = desk.json("inboxes", "threads", "help@harbor.example")["data"]
    return str(thread["id"])


def test_inboxes_are_listed(desk: Installation) -> None:
    [found] = desk.json("inboxes", "list")["data"]
    assert (found["email_address"], found["unread"]) == ("help@harbor.example", 1)
    shown = desk.run("inboxes", "list")
    assert shown.exit_code == 0, shown.output
    assert "help@harbor.example" in shown.stdout


def test_an_inbox_is_created(desk: Installation) -> None:
    made = desk.json("inboxes", "create", "Sales@Harbor.example", "--name", "Sales", "--from-name", "Mina")
    assert (made["email_address"], made["name"], made["from_name"]) == (
        "sales@harbor.example",
        "Sales",
        "Mina",
    )
    assert len(desk.json("inboxes", "list")["data"]) == 2
    again = desk.run("inboxes", "create", "sales@harbor.example")
    assert again.exit_code == 1
    assert again.stderr == "pillarbox: The email address is used by another inbox.\n"
    wrong = desk.run("inboxes", "create", "sales@elsewhere.example")
    assert wrong.exit_code == 1
    assert len(desk.json("inboxes", "list")["data"]) == 2


def test_an_inbox_is_shown(desk: Installation) -> None:
    shown = desk.run("inboxes", "show", "help@harbor.example")
    assert shown.exit_code == 0, shown.output
    assert "Unread:         1\n" in shown.stdout
    assert desk.json("inboxes", "show", "help@harbor.example")["object"] == "inbox"
    assert desk.run("inboxes", "show", "nobody@harbor.example").stderr == "pillarbox: Inbox not found\n"
    assert desk.run("inboxes", "show", "nonsense").exit_code == 1


def test_threads_are_listed(desk: Installation) -> None:
    shown = desk.run("inboxes", "threads", "help@harbor.example", "--unread")
    assert shown.exit_code == 0, shown.output
    assert "Refund for order 88" in shown.stdout
    assert "Old" not in shown.stdout
    [archived] = desk.json("inboxes", "threads", "help@harbor.example", "--folder", "archive")["data"]
    assert archived["subject"] == "Old"
    empty = desk.run("inboxes", "threads", "help@harbor.example", "--folder", "spam")
    assert empty.stdout == "There are no such threads.\n"
    assert desk.run("inboxes", "threads", "help@harbor.example", "--folder", "nowhere").exit_code == 2
    assert desk.run("inboxes", "threads", "help@harbor.example", "--after", "x").exit_code == 1


def test_a_thread_is_read(desk: Installation) -> None:
    thread = the_thread(desk)
    shown = desk.run("inboxes", "read", "help@harbor.example", thread)
    assert shown.exit_code == 0, shown.output
    assert "When does it come?" in shown.stdout
    assert "on its way" not in shown.stdout
    assert "\x1b" not in shown.stdout
    assert desk.json("inboxes", "show", "help@harbor.example")["unread"] == 1
    whole = desk.run("inboxes", "read", "help@harbor.example", thread, "--whole", "--mark-read")
    assert "on its way" in whole.stdout
    assert desk.json("inboxes", "show", "help@harbor.example")["unread"] == 0
    messages = desk.json("inboxes", "read", "help@harbor.example", thread)["data"]
    assert len(messages) == 2


def test_a_thread_is_answered(desk: Installation) -> None:
    thread = the_thread(desk)
    sent = desk.json("inboxes", "reply", "help@harbor.example", thread, "--text", "Tomorrow.")
    [row] = desk.sql("SELECT subject, to_list FROM emails WHERE id = $1", sent["id"])
    assert row["subject"] == "Re: Refund for order 88"
    assert "iris@customer.example" in row["to_list"]
    messages = desk.json("inboxes", "read", "help@harbor.example", thread)["data"]
    assert [one["direction"] for one in messages] == ["inbound", "inbound", "outbound"]
    assert messages[-1]["extracted_text"] == "Tomorrow."
    nothing = desk.run("inboxes", "reply", "help@harbor.example", thread, "--text", " ")
    assert nothing.exit_code == 1
    missing = desk.run("inboxes", "reply", "help@harbor.example", str(sent["id"]), "--text", "Hello")
    assert missing.stderr == "pillarbox: Thread not found\n"
    assert desk.run("verify").exit_code == 0


def test_html_without_text_is_read_whole_too(empty: Installation) -> None:
    async def fill_with_html() -> None:
        async with world(empty.url, empty.folder, started=False) as here:
            team = await here.team("Harbor")
            await inbox_domain(team)
            thread = await (await an_inbox(team)).thread("Refund for order 88")
            await thread.received(
                b"From: iris@customer.example\r\nTo: help@harbor.example\r\nSubject: Refund\r\n"
                b"Content-Type: text/html\r\n\r\n<p>When does it <b>come</b>?</p>"
                b"<blockquote type='cite'>It is on its way.</blockquote>\r\n"
            )

    asyncio.run(fill_with_html())
    shown = desk_shows(empty)
    assert "When does it come?" in shown
    assert "on its way" not in shown
    whole = desk_shows(empty, "--whole")
    assert "When does it come?" in whole
    assert "on its way" in whole


def desk_shows(desk: Installation, *arguments: str) -> str:
    shown = desk.run("inboxes", "read", "help@harbor.example", the_thread(desk), *arguments)
    assert shown.exit_code == 0, shown.output
    return shown.stdout


def test_an_answer_comes_on_standard_input(desk: Installation) -> None:
    reply = ("inboxes", "reply", "help@harbor.example", the_thread(desk))
    assert desk.run(*reply, stdin="Morgen früh.\n".encode()).exit_code == 0
    assert "Morgen früh." in desk_shows(desk)
    for stdin, reason in (
        (b"\xff", "Standard input is no UTF-8."),
        (b"a\0b", "An answer may not contain NUL characters."),
        (b" \n", "Missing `html` or `text` field."),
    ):
        refused = desk.run(*reply, stdin=stdin)
        assert (refused.exit_code, refused.stderr) == (1, f"pillarbox: {reason}\n")
    refused = desk.run(*reply, "--text", "\udcff")
    assert (refused.exit_code, refused.stderr) == (1, "pillarbox: A value of the command line is no UTF-8.\n")
