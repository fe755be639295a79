"""`pillarbox restored`: what a restore has put aside, and what becomes of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer

from pillarbox.backup import restored
from pillarbox.backup.restored import RestoredChoice
from pillarbox.backup.restored_queries import RestoredWork
from pillarbox.delivery.queue.operator_acts import wake_engines
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.terminal.answers import (
    CommandRefused,
    counted,
    instant,
    perform,
    say,
    show_table,
    stopped,
)
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl
from pillarbox.kernel.terminal.questions import confirm

group = typer.Typer(
    invoke_without_command=True,
    help="Show what a restore has put aside, because it may have been sent since; release or drop it.",
)

WORDS = {
    "mail": "mail that was due or being retried",
    "scheduled": "scheduled mail",
    "fetching": "mail waiting for an attachment",
    "notices": "notices to teams about webhooks",
    "broadcasts": "broadcasts that were scheduled or being sent",
    "automations": "steps of runs of automations",
    "webhooks": "events for webhooks",
}

Mail = Annotated[bool, typer.Option("--mail", help="Only mail.")]
Webhooks = Annotated[bool, typer.Option("--webhooks", help="Only events for webhooks.")]
DueAfter = Annotated[
    str | None,
    typer.Option(
        "--due-after",
        metavar="TIME",
        help="Only what was to be done after this time (ISO 8601), such as the end of the old server.",
        show_default=False,
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


@group.callback()
def show(context: typer.Context, data: Data = None, database_url: DatabaseUrl = None) -> None:
    """Show what is put aside. The exit status is 1 while there is something."""
    if context.invoked_subcommand is not None:
        if data or database_url:
            raise stopped(f"Put the options behind `restored {context.invoked_subcommand}`.", 2)
        return
    perform(show_all, data=data, database_url=database_url)


@group.command("release")
def release(
    mail: Mail = False,
    webhooks: Webhooks = False,
    due_after: DueAfter = None,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Let it go: mail is sent, at its time where that is still to come; events are posted."""
    after = None if due_after is None else as_instant(due_after)

    async def work(connected: CommandDatabase) -> int:
        moved = await restored.release(connected.pool, choice(mail, webhooks), after, SystemClock().now)
        await wake_engines(connected.pool)
        say(f"{counted(moved, 'item is', 'items are')} released.")
        await say_what_is_left(connected)
        return 0

    perform(work, data=data, database_url=database_url)


@group.command("drop")
def drop(
    mail: Mail = False,
    webhooks: Webhooks = False,
    yes: Yes = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Give it up: recipients end `failed` with the reason `dropped_by_operator`, events end `failed` and can
    be replayed, broadcasts are canceled or drafts again. There is no way back."""

    async def work(connected: CommandDatabase) -> int:
        from pillarbox.timeline.plugin import timeline_of

        clock = SystemClock()
        work = await restored.summary(connected.pool, clock.now())
        if not work:
            raise CommandRefused("Nothing is put aside.")
        if not yes:
            show_restored_work(work, None)
            confirm("Give it up?")
        dropped = await restored.drop(connected.pool, choice(mail, webhooks), timeline_of(clock), clock.now)
        say(f"{counted(dropped, 'item is', 'items are')} dropped.")
        await say_what_is_left(connected)
        return 0

    perform(work, data=data, database_url=database_url)


async def show_all(connected: CommandDatabase) -> int:
    origin = await restored.origin(connected.pool)
    work = await restored.summary(connected.pool, SystemClock().now())
    if origin is None and not work:
        say("Nothing is put aside.")
        return 0
    if origin is not None:
        say(f"Restored on {instant(origin.restored_at)} from {origin.backup}.")
    show_restored_work(work, None if origin is None else origin.snapshot_at)
    return int(bool(work))


async def say_what_is_left(connected: CommandDatabase) -> None:
    if left := sum(part.items for part in await restored.summary(connected.pool, SystemClock().now())):
        say(f"{counted(left, 'item is', 'items are')} still put aside.")


def show_restored_work(work: Sequence[RestoredWork], snapshot_at: datetime | None) -> None:
    """Print the work that is put aside, by kind, and the commands that release or drop it."""
    if not work:
        say("Nothing was open when the backup was made.")
        return
    if snapshot_at is not None:
        say(f"Put aside, because it may have been sent since {instant(snapshot_at)}:")
    rows = [(h.items, WORDS[h.kind], h.oldest, h.newest, h.later) for h in work]
    show_table(("Items", "What", "Oldest", "Newest", "Due later"), rows)
    say("New mail is sent as always. `pillarbox restored release` lets this go, `restored drop` gives it up.")


def choice(mail: bool, webhooks: bool) -> RestoredChoice:
    """Return the choice of these kinds; both where none is named."""
    return RestoredChoice(mail or not webhooks, webhooks or not mail)


def as_instant(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise stopped(f"{text!r} is not a time such as 2026-11-22T14:00:00Z.", 2) from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
