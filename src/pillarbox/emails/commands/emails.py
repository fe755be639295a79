"""`pillarbox emails`: what became of an email, step by step. `receiving` adds `show`, for both kinds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
import typer

from pillarbox.delivery.commands.queue import item_shape, team_names, when
from pillarbox.delivery.commands.words import attempts, reason_in_words, why
from pillarbox.delivery.queue import email_work
from pillarbox.delivery.queue.overview import WaitingItem
from pillarbox.domains.senders import Senders
from pillarbox.emails import overview_queries
from pillarbox.emails.commands.emails_list import (
    After,
    Broadcast,
    Domain,
    EmailSource,
    From,
    Key,
    Limit,
    MessageId,
    Since,
    State,
    Subject,
    Tag,
    To,
    Until,
    show_found,
    texts,
    wanted,
)
from pillarbox.emails.insights.reading import insights_of
from pillarbox.emails.insights.rules import Insight
from pillarbox.emails.overview_queries import EmailOverview, RecipientOverview
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.terminal.answers import (
    Json,
    counted,
    instant,
    perform,
    say,
    show_json,
    show_table,
    span,
)
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl
from pillarbox.teams.commands.choosing import TeamOption
from pillarbox.timeline import history
from pillarbox.timeline.history_queries import HistoryEvent
from pillarbox.timeline.rules import OPEN, EventDetail

group = typer.Typer(no_args_is_help=True, help="List emails, and show what became of one.")

MOST_EVENTS = 10_000


@group.command("list")
def list_emails(
    team: TeamOption = None,
    to: To = None,
    sender: From = None,
    subject: Subject = None,
    state: State = None,
    domain: Domain = None,
    since: Since = None,
    until: Until = None,
    tag: Tag = None,
    key: Key = None,
    broadcast: Broadcast = None,
    source: EmailSource = None,
    message_id: MessageId = None,
    limit: Limit = 20,
    after: After = None,
    json: Json = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """List emails, the newest first: of one team or of all, and only those that fit every option."""
    perform(
        lambda connected: show_found(
            connected,
            team,
            wanted(
                to=to,
                sender=sender,
                subject=subject,
                state=state,
                domain=domain,
                since=since,
                until=until,
                tag=tag,
                key=key,
                broadcast=broadcast,
                source=source,
                message_id=message_id,
            ),
            limit,
            after,
            json=json,
        ),
        data=data,
        database_url=database_url,
    )


async def show_sent(connected: CommandDatabase, email_id: UUID, *, json: bool) -> bool:
    """Show the email of this id that was accepted for sending; False when there is none."""
    team_id = await overview_queries.owner_of(connected.pool, email_id)
    db = None if team_id is None else TeamDb(connected.pool, team_id)
    email = None if db is None else await overview_queries.get(db, email_id)
    if team_id is None or db is None or email is None:
        return False
    recipients = await overview_queries.recipients(db, email_id)
    work = await email_work.live_items(db, email_id, SystemClock().now())
    lines = await history.events(db, email_id, MOST_EVENTS)
    insights = await insights_of(db, Senders(connected.pool, SystemClock()), email_id) or []
    if json:
        show_json(email_shape(email, recipients, work, lines, insights))
        return True
    names = await team_names(connected)
    show_head(email, names.get(team_id, str(team_id)))
    show_recipients(recipients)
    show_lines(lines)
    show_work(work, recipients)
    show_insights(insights)
    return True


def show_head(email: EmailOverview, team: str) -> None:
    facts: list[tuple[str, object]] = [
        ("Email", email.id),
        ("Team", team),
        ("From", email.sender),
        ("To", ", ".join(texts(email.to_list))),
        ("Cc", ", ".join(texts(email.cc_list))),
        ("Bcc", ", ".join(texts(email.bcc_list))),
        ("Subject", email.subject),
        ("Message-ID", email.message_id),
        ("Attachments", email.attachments or ""),
        ("Accepted", instant(email.created_at)),
        ("Scheduled", instant(email.scheduled_at) if email.scheduled_at else ""),
        ("State", f"{email.last_event} since {instant(email.last_event_at)}"),
    ]
    for name, value in facts:
        if value != "":
            say(f"{name + ':':<13} {value}")


def show_recipients(recipients: Sequence[RecipientOverview]) -> None:
    say()
    show_table(
        ("Recipient", "As", "State"),
        [(found.mailbox, found.role, state_of(found)) for found in recipients],
    )


def show_lines(lines: Sequence[HistoryEvent]) -> None:
    say()
    show_table(
        ("Time", "Recipient", "Event", "Host", "Answer or reason", "Next attempt"),
        [line_row(line) for line in lines],
    )
    if len(lines) == MOST_EVENTS:
        say(f"Only the first {MOST_EVENTS:,} steps are shown.")


def line_row(line: HistoryEvent) -> Sequence[object]:
    detail = detail_of(line)
    return (
        precise(line.at),
        line.recipient or "(all)",
        line.kind,
        detail.host,
        detail_text(detail),
        detail.next_attempt_at,
    )


def show_work(work: Sequence[WaitingItem], recipients: Sequence[RecipientOverview]) -> None:
    """Print the work that is left, and why it is not done yet."""
    now = SystemClock().now()
    waiting = [found for found in recipients if found.state in OPEN]
    carried = {item.grp for item in work}
    say()
    for item in work:
        count = sum(found.grp == item.grp for found in waiting)
        upcoming = item.next_attempt_at
        ahead = f" Next attempt {when(upcoming, now)} ({instant(upcoming)})." if upcoming else ""
        age = span(now - item.created_at)
        say(
            f"{counted(count, 'recipient')} at {item.destination} waiting for {age}: {why(item, now)} "
            f"{attempts(item).capitalize()}.{ahead}"
        )
    lost = [found.mailbox for found in waiting if found.grp not in carried]
    if lost:
        say(f"Nothing carries {', '.join(lost)} any more: `pillarbox verify` tells what is missing.")
    if not waiting and not work:
        say("Nothing waits: every recipient has a final state.")


def show_insights(insights: Sequence[Insight]) -> None:
    """Print the insights that ask for attention; nothing where all is well."""
    noted = [insight for insight in insights if insight.level != "ok"]
    if noted:
        say()
        show_table(
            ("Insight", "Level", "What it means"),
            [(insight.code, insight.level, insight.message) for insight in noted],
        )


def email_shape(
    email: EmailOverview,
    recipients: Sequence[RecipientOverview],
    work: Sequence[WaitingItem],
    lines: Sequence[HistoryEvent],
    insights: Sequence[Insight],
) -> dict[str, Any]:
    now = SystemClock().now()
    return {
        "object": "email",
        "id": email.id,
        "team_id": email.team_id,
        "created_at": email.created_at,
        "from": email.sender,
        "to": texts(email.to_list),
        "cc": texts(email.cc_list),
        "bcc": texts(email.bcc_list),
        "reply_to": texts(email.reply_to_list),
        "subject": email.subject,
        "message_id": email.message_id,
        "attachments": email.attachments,
        "scheduled_at": email.scheduled_at,
        "last_event": email.last_event,
        "last_event_at": email.last_event_at,
        "recipients": [recipient_shape(found) for found in recipients],
        "events": [line_shape(line) for line in lines],
        "waiting": [item_shape(item, now) for item in work],
        "insights": [insight._asdict() for insight in insights],
    }


def recipient_shape(recipient_overview: RecipientOverview) -> dict[str, Any]:
    return {
        "address": recipient_overview.mailbox,
        "role": recipient_overview.role,
        "state": recipient_overview.state,
        "bounce_type": recipient_overview.bounce_type,
        "group": recipient_overview.grp,
    }


def line_shape(line: HistoryEvent) -> dict[str, Any]:
    detail: dict[str, Any] = {} if line.detail is None else msgspec.json.decode(line.detail)
    return {
        "id": line.id,
        "created_at": line.at,
        "event": line.kind,
        "recipient": line.recipient,
        "detail": detail,
    }


def state_of(recipient_overview: RecipientOverview) -> str:
    return (
        f"{recipient_overview.state} ({recipient_overview.bounce_type})"
        if recipient_overview.bounce_type
        else recipient_overview.state
    )


def detail_of(line: HistoryEvent) -> EventDetail:
    return EventDetail() if line.detail is None else msgspec.json.decode(line.detail, type=EventDetail)


def detail_text(detail: EventDetail) -> str | None:
    """Return the other side's reply, or else the reason in words, with the number of the attempt."""
    parts = [detail.reply or reason_in_words(detail.reason or detail.suppressed)]
    if detail.attempt is not None and detail.attempt > 1:
        parts.append(f"(attempt {detail.attempt})")
    if detail.click is not None:
        parts.append(detail.click.link)
    if detail.machine is not None:
        parts.append(f"(by a machine: {detail.machine})")
    if detail.uncertain:
        parts.append("(may have arrived already)")
    return " ".join(part for part in parts if part) or None


def precise(instant: datetime) -> str:
    """Return the instant with milliseconds: several steps share a second."""
    return instant.strftime("%Y-%m-%d %H:%M:%S.") + f"{instant.microsecond // 1000:03d}Z"
