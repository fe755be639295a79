"""`pillarbox inboxes threads|read|reply`: the conversations of an inbox, and answers to them."""

from __future__ import annotations

import sys
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
import typer

from pillarbox.inboxes.commands.inboxes import InboxName, OfTeam, group, of_team, parts
from pillarbox.inboxes.folders import ThreadFolder
from pillarbox.inboxes.messages.lists import message_page
from pillarbox.inboxes.messages.queries import StoredMessage
from pillarbox.inboxes.messages.reading import MessageReading
from pillarbox.inboxes.sending.send import InboxSender, SendCall, ThreadMessage
from pillarbox.inboxes.sending.wire import ReplyIn
from pillarbox.inboxes.threads import lists, wire
from pillarbox.inboxes.threads.changes import Threads, found
from pillarbox.inboxes.threads.list_filter import ThreadFilter
from pillarbox.kernel.security.authentication import Caller, Permission
from pillarbox.kernel.terminal.answers import (
    CommandRefused,
    Json,
    as_id,
    counted,
    perform,
    say,
    show_json,
    show_table,
)
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl
from pillarbox.kernel.wire.fields import parse
from pillarbox.kernel.wire.instants import parse_instant
from pillarbox.kernel.wire.paging import MOST, Page
from pillarbox.mail.html.plain_text import text_of
from pillarbox.teams.commands.choosing import TeamOption
from pillarbox.teams.team import Team

__all__ = ["group"]

LINE: Final = "─" * 72

ThreadId = Annotated[str, typer.Argument(metavar="THREAD", help="The id of the thread.")]
InFolder = Annotated[
    ThreadFolder, typer.Option("--folder", help="Which folder.", case_sensitive=False, show_default=True)
]
Unread = Annotated[bool, typer.Option("--unread", help="Only threads with unread messages.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=MOST, help="How many at most.")]
After = Annotated[
    str | None,
    typer.Option("--after", metavar="THREAD", help="Continue behind this thread.", show_default=False),
]
Whole = Annotated[bool, typer.Option("--whole", help="With what the messages quote, and their signatures.")]
MarkRead = Annotated[bool, typer.Option("--mark-read", help="Mark the thread as read.")]
Text = Annotated[
    str | None,
    typer.Option("--text", metavar="TEXT", help="The answer (default: standard input).", show_default=False),
]
ToAll = Annotated[bool, typer.Option("--all", help="Answer everybody, not only the sender.")]
Email = Annotated[
    str | None,
    typer.Option(
        "--email", metavar="EMAIL", help="Answer this message (default: the newest).", show_default=False
    ),
]


@group.command("threads")
def show_threads(
    inbox: InboxName,
    folder: InFolder = ThreadFolder.INBOX,
    unread: Unread = False,
    limit: Limit = 20,
    after: After = None,
    team: TeamOption = None,
    json: Json = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """List the threads of a folder, the newest activity first."""
    wanted = ThreadFilter(frozenset({folder}), with_sent=False, read=False if unread else None)
    perform(
        lambda connected: listed(connected, team, inbox, wanted, (limit, after), json=json),
        data=data,
        database_url=database_url,
    )


@group.command("read")
def read_thread(
    inbox: InboxName,
    thread: ThreadId,
    whole: Whole = False,
    mark_read: MarkRead = False,
    team: TeamOption = None,
    json: Json = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Print the messages of a thread, the oldest first: what is new in each."""
    perform(
        lambda connected: told(connected, team, inbox, thread, (whole, mark_read), json=json),
        data=data,
        database_url=database_url,
    )


@group.command("reply")
def reply_to(
    inbox: InboxName,
    thread: ThreadId,
    text: Text = None,
    to_all: ToAll = False,
    email: Email = None,
    team: TeamOption = None,
    json: Json = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Answer a message of a thread. The running server sends it."""
    perform(
        lambda connected: answered(connected, team, (inbox, thread, email), (said(text), to_all), json=json),
        data=data,
        database_url=database_url,
    )


async def listed(
    connected: CommandDatabase,
    team: str | None,
    inbox: str,
    thread_filter: ThreadFilter,
    place: tuple[int, str | None],
    *,
    json: bool,
) -> int:
    """Print a page of them."""
    owner = await of_team(connected, team, inbox)
    limit, after = place
    page = Page(limit, None if after is None else as_id(after, "a thread"))
    shown = await lists.thread_page(owner.db, owner.inbox_id, page, thread_filter)
    items = [wire.item(row) for row in shown.threads]
    if json:
        page_json = msgspec.json.encode(wire.ThreadList(has_more=shown.has_more, data=items))
        show_json(msgspec.json.decode(page_json))
    elif items:
        show_table(
            ("Id", "From", "Subject", "Labels", "Messages", "Read", "Last activity"),
            [
                (
                    one.id,
                    one.from_,
                    one.subject or "(no subject)",
                    ", ".join(label.name for label in one.labels),
                    one.message_count,
                    "yes" if one.read else "no",
                    parse_instant(one.received_at),
                )
                for one in items
            ],
        )
        if shown.has_more:
            say(f"There are more: --after {items[-1].id}")
    else:
        say("There are no such threads.")
    return 0


async def told(
    connected: CommandDatabase,
    team: str | None,
    inbox: str,
    thread: str,
    how: tuple[bool, bool],
    *,
    json: bool,
) -> int:
    """Print the messages of a thread."""
    owner = await of_team(connected, team, inbox)
    thread_id = as_id(thread, "a thread")
    summary = await found(owner.db, owner.inbox_id, thread_id)
    whole, mark_read = how
    rows = await _messages(owner, thread_id)
    if not json:
        say(f"{summary.subject or '(no subject)'} [{summary.folder}], {counted(len(rows), 'message')}")
    messages = []
    async with parts(connected) as kit:
        reading = kit.need(MessageReading)
        for row in rows:
            message = msgspec.json.decode(await reading.one(owner.db, row, lambda: False))
            if json:
                messages.append(message)
            else:
                _print(message, whole=whole)
        if mark_read:
            async with owner.db.transaction() as inside:
                await kit.need(Threads).update(inside, owner.inbox_id, thread_id, is_read=True)
    if json:
        show_json({"object": "list", "has_more": False, "data": messages})
    return 0


async def _messages(owner: OfTeam, thread_id: UUID) -> list[StoredMessage]:
    """Return all messages of the thread, the oldest first."""
    rows: list[StoredMessage] = []
    while True:
        page = Page(MOST, rows[-1].id if rows else None)
        messages = await message_page(owner.db, owner.inbox_id, thread_id, page)
        block, has_more = messages.rows, messages.has_more
        rows += block
        if not has_more:
            return rows


def _print(message: dict[str, Any], *, whole: bool) -> None:
    say(LINE)
    arrow = "<-" if message["direction"] == "inbound" else "->"
    say(f"{arrow} {message['received_at']}  {message['from']}  to {', '.join(message['to'])}")
    say(f"   {message['id']}{'' if message['read'] else '  unread'}")
    say()
    text = _whole(message) if whole else message["extracted_text"]
    for line in (text or "(no text)").splitlines():
        say(line)
    for file in message["attachments"]:
        say(f"[{file['filename'] or 'attachment'}, {counted(file['size'], 'octet')}]")


def _whole(message: dict[str, Any]) -> str | None:
    """Return the message's text, or that of its HTML where there is no other."""
    text: str | None = message["text"]
    if (text is None or not text.strip()) and message["html"]:
        return text_of(message["html"])
    return text


def said(text: str | None) -> str:
    """Return the answer that the command line or standard input has."""
    if text is None:
        try:
            text = sys.stdin.buffer.read().decode()
        except UnicodeDecodeError:
            raise CommandRefused("Standard input is no UTF-8.") from None
    if "\0" in text:
        raise CommandRefused("An answer may not contain NUL characters.")
    return text


async def answered(
    connected: CommandDatabase,
    team: str | None,
    what: tuple[str, str, str | None],
    answer: tuple[str, bool],
    *,
    json: bool,
) -> int:
    """Send an answer, as a request would."""
    inbox, thread, email = what
    body = dict(zip(("text", "reply_all"), answer, strict=True))
    owner = await of_team(connected, team, inbox)
    thread_id = as_id(thread, "a thread")
    rows = await _messages(owner, thread_id)
    if email is not None:
        target = as_id(email, "an email")
    elif rows:
        target = rows[-1].id
    else:
        raise CommandRefused("The thread has no messages.")
    async with parts(connected) as kit:
        call = SendCall(operator(owner.owner))
        place = ThreadMessage(owner.inbox_id, thread_id, target)
        sent = await kit.need(InboxSender).reply(owner.db, call, place, parse(ReplyIn, body).request())
    made = msgspec.json.decode(sent)
    if json:
        show_json(made)
    else:
        say(f"Sent as {made['id']}.")
    return 0


def operator(team: Team) -> Caller:
    """Return a caller who may do everything for the team, within its quotas."""
    return Caller(
        team.id,
        team.number,
        None,
        Permission.FULL,
        daily_quota=team.daily_quota,
        monthly_quota=team.monthly_quota,
    )
