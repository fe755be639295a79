"""`pillarbox contacts show`: all that decides whether a person gets mail, and what became of the last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import msgspec

from pillarbox.contacts import overview_queries, queries
from pillarbox.contacts.conditions import membership
from pillarbox.contacts.overview_queries import SuppressedAddress, TopicInDetail
from pillarbox.contacts.queries import ContactRow, ContactWithProperties
from pillarbox.contacts.segment_queries import SegmentOfContact
from pillarbox.contacts.store import find
from pillarbox.emails.search.filters import EmailFilter, FoundEmail
from pillarbox.emails.search.find import find as find_emails
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.terminal.answers import CommandRefused, instant, say, show_json, show_table
from pillarbox.kernel.terminal.connect import CommandDatabase
from pillarbox.kernel.wire.paging import every_row
from pillarbox.kernel.wire.problems import NotFound
from pillarbox.teams.commands.choosing import chosen_teams
from pillarbox.teams.team import Team

LAST: Final = 10
"""Mails that are shown."""

LONGEST_SHOWN: Final = 200
"""Characters of a value that people are shown."""


@dataclass(frozen=True, slots=True)
class ContactOverview:
    """A contact of one team, with everything that the team has stored about it."""

    team: Team
    contact: ContactRow
    found: ContactWithProperties
    segments: Sequence[SegmentOfContact]
    topics: Sequence[TopicInDetail]
    suppressed: SuppressedAddress | None
    emails: Sequence[FoundEmail]


async def show_contact(connected: CommandDatabase, team: str | None, named: str, *, json: bool) -> int:
    """Print what each team knows of a contact."""
    teams = await chosen_teams(connected, team)
    found = [one for one in [await overview(connected, one, named) for one in teams] if one is not None]
    if not found:
        whose = f"The team {teams[0].name!r}" if team is not None else "No team"
        raise CommandRefused(f"{whose} has {'no' if team is not None else 'a'} contact {named!r}.")
    if json:
        show_json({"object": "list", "data": [shape(one) for one in found]})
        return 0
    for number, one in enumerate(found):
        if number:
            say()
        show_overview(one)
    return 0


async def overview(connected: CommandDatabase, team: Team, named: str) -> ContactOverview | None:
    """Return everything that the team has of the contact; None where there is no such contact."""
    db = TeamDb(connected.pool, team.id)
    try:
        contact_id = await find(db, named)
    except NotFound:
        return None
    contact, found = await overview_queries.contact(db, contact_id), await queries.found(db, contact_id)
    address = await queries.address_of(db, contact_id)
    if contact is None or found is None or address is None:
        return None
    wanted = EmailFilter.parsed(to=address)
    return ContactOverview(
        team=team,
        contact=contact,
        found=found,
        segments=await every_row(partial(membership.segments_page, db, contact_id, SystemClock().now())),
        topics=await overview_queries.topics(db, contact_id),
        suppressed=await overview_queries.suppressed(db, address),
        emails=(await find_emails(connected.pool, team.id, wanted, limit=LAST)).emails,
    )


def show_overview(contact_overview: ContactOverview) -> None:
    """Print the contact for people."""
    contact = contact_overview.contact
    name = " ".join(part for part in (contact.first_name, contact.last_name) if part)
    say(
        f"{contact.email}{f' ({name})' if name else ''}, contact {contact.id} of {contact_overview.team.name}"
    )
    say(f"Created {instant(contact.created_at)}, changed {instant(contact.updated_at)}.")
    say("Unsubscribed from everything." if contact.unsubscribed else "Not unsubscribed.")
    if contact_overview.suppressed is None:
        say("Not on the suppression list.")
    else:
        suppressed = contact_overview.suppressed
        say(f"On the suppression list since {instant(suppressed.created_at)}: {suppressed.origin}.")
    properties = [(key, kind, _cut(value)) for key, kind, value in _properties(contact_overview.found)]
    _section("Properties", ("Key", "Type", "Value"), properties)
    _section(
        "Segments", ("Id", "Name"), [(segment.id, segment.name) for segment in contact_overview.segments]
    )
    topics = [(topic.id, topic.name, topic.subscription, _chosen(topic)) for topic in contact_overview.topics]
    _section("Topics", ("Id", "Name", "Subscription", "Chosen"), topics)
    emails = [(mail.id, mail.created_at, mail.subject, mail.last_event) for mail in contact_overview.emails]
    _section("Last emails to this address", ("Id", "Accepted", "Subject", "State"), emails)


def shape(contact_overview: ContactOverview) -> dict[str, Any]:
    """Return the contact as the JSON that the command prints."""
    contact = contact_overview.contact
    return {
        "team": {"id": contact_overview.team.id, "name": contact_overview.team.name},
        "id": contact.id,
        "email": contact.email,
        "first_name": contact.first_name,
        "last_name": contact.last_name,
        "unsubscribed": contact.unsubscribed,
        "created_at": contact.created_at,
        "updated_at": contact.updated_at,
        "properties": {key: value for key, _, value in _properties(contact_overview.found)},
        "segments": [{"id": segment.id, "name": segment.name} for segment in contact_overview.segments],
        "topics": [
            {
                "id": topic.id,
                "name": topic.name,
                "subscription": topic.subscription,
                "chosen_at": topic.chosen_at,
            }
            for topic in contact_overview.topics
        ],
        "suppression": None
        if contact_overview.suppressed is None
        else {
            "origin": contact_overview.suppressed.origin,
            "created_at": contact_overview.suppressed.created_at,
        },
        "emails": [
            {
                "id": mail.id,
                "created_at": mail.created_at,
                "subject": mail.subject,
                "last_event": mail.last_event,
            }
            for mail in contact_overview.emails
        ],
    }


def _properties(contact_with_properties: ContactWithProperties) -> list[tuple[str, str, Any]]:
    known: dict[str, dict[str, Any]] = msgspec.json.decode(contact_with_properties.encoded)
    return [(key, one["type"], one["value"]) for key, one in known.items()]


def _cut(value: Any) -> Any:
    return f"{value[:LONGEST_SHOWN]}…" if isinstance(value, str) and len(value) > LONGEST_SHOWN else value


def _chosen(topic: TopicInDetail) -> str:
    return "the topic's default" if topic.chosen_at is None else instant(topic.chosen_at)


def _section(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    say()
    if rows:
        say(f"{title}:")
        show_table(columns, rows)
    else:
        say(f"{title}: none.")
