"""The history of a contact, from several parts of the program, as one list with the newest first.

A mail stands where it was accepted, with all that became of it below it. So a page needs its own mails alone,
however many the contact got. Each part gives its entries before a position, and the page takes the newest.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from pillarbox.automations.runs.contact_runs import runs_of_contact
from pillarbox.contacts.contact_history import contact_moments, events_of_contact, suppressed_address
from pillarbox.dashboard.frame.tones import QUIET, tone_of
from pillarbox.dashboard.texts import has_text, t
from pillarbox.emails.search.filters import EmailFilter
from pillarbox.emails.search.find import find
from pillarbox.forms.sign_up_history import sign_ups_of_address
from pillarbox.kernel.ids import EPOCH, MICROSECOND, first_id
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.instants import iso_style
from pillarbox.receiving.contact_mail import mail_from
from pillarbox.timeline import history
from pillarbox.timeline.history_queries import EventOfRecipient

ROWS: Final = 25
MOST_STEPS: Final = 40
"""Events of one mail that are read."""

MOST_SHOWN: Final = 8
NEWEST: Final = UUID(int=2**128 - 1)
LATEST: Final = datetime(9999, 1, 1, tzinfo=UTC)
FORM: Final = "/dashboard/forms/"
LEADS_TO: Final = {
    "imported": "/dashboard/contacts/imports/",
    "joined_segment": "/dashboard/segments/",
    "opt_in": "/dashboard/topics/",
    "opt_out": "/dashboard/topics/",
}
"""The screens of what a moment is about."""


class TimelinePosition(NamedTuple):
    """A place between two entries: what is before it is older."""

    at: datetime
    id: UUID

    @property
    def text(self) -> str:
        """The position as the address of a page has it."""
        return f"{(self.at - EPOCH) // MICROSECOND}.{self.id.hex}"


class ContactStep(NamedTuple):
    """Something that became of an entry. `at` is ISO text, None where it has no time of its own."""

    at: str | None
    title: str


class ContactEntry(NamedTuple):
    """One thing that happened. `name` is what somebody wrote, `href` leads to it; `note` is what the contact
    consented to, or where an import got its people from. `at` is ISO text."""

    position: TimelinePosition
    title: str
    tone: str
    name: str | None
    href: str | None
    steps: Sequence[ContactStep] = ()
    more_steps: int = 0
    note: str | None = None

    @property
    def at(self) -> str:
        """When it happened."""
        return iso_style(self.position.at)


class TimelinePage(NamedTuple):
    """Entries of a page, the newest first, and where the next one begins; None at the end."""

    entries: list[ContactEntry]
    older: str | None


START: Final = TimelinePosition(LATEST, NEWEST)


def position_of(text: str | None) -> TimelinePosition:
    """Return the position that an address names; the newest end where it names none."""
    micros, _, digits = (text or "").partition(".")
    if not (micros.isascii() and micros.isdecimal() and len(micros) < 18 and len(digits) == 32):
        return START
    try:
        return TimelinePosition(EPOCH + timedelta(microseconds=int(micros)), UUID(digits))
    except (ValueError, OverflowError):
        return START


async def timeline_page(
    db: TeamDb,
    contact_id: UUID,
    address: str,
    before: TimelinePosition = START,
    *,
    given: str | None = None,
) -> TimelinePage:
    """Return what happened to a contact with this compared address before a position. Mail from the address
    may have it as it was given."""
    mails, read_to = await _mails(db, address, before)
    entries = [
        *mails,
        *await _received(db, dict.fromkeys((address, (given or address).lower())), before),
        *await _runs(db, contact_id, before),
        *await _events(db, contact_id, before),
        *await _sign_ups(db, address, before),
        *await _moments(db, contact_id),
        *await _suppression(db, address),
    ]
    entries = sorted((one for one in entries if one.position < before), key=_position, reverse=True)
    shown = [entry for entry in entries if read_to is None or entry.position >= read_to][:ROWS]
    if len(shown) < len(entries) and (len(shown) == ROWS or read_to is None):
        return TimelinePage(shown, shown[-1].position.text)
    return TimelinePage(shown, None if read_to is None else read_to.text)


def _position(entry: ContactEntry) -> TimelinePosition:
    return entry.position


async def _mails(
    db: TeamDb, address: str, before: TimelinePosition
) -> tuple[list[ContactEntry], TimelinePosition | None]:
    """Return the newest mails to the address, and down to which position nothing is left out; None: to the
    end."""
    email_filter = EmailFilter(to=address)
    page = await find(db.source, db.team_id, email_filter, limit=ROWS, after=_upper(before))
    events = await history.of_recipient(db, [email.id for email in page.emails], address, MOST_STEPS)
    entries = [
        ContactEntry(
            position=TimelinePosition(email.created_at, email.id),
            title=t("contact.happened.email"),
            tone=tone_of(email.last_event),
            name=email.subject or t("email.no_subject"),
            href=f"/dashboard/emails/{email.id}",
            steps=(steps := steps_of(events.get(email.id, [])))[:MOST_SHOWN],
            more_steps=max(0, len(steps) - MOST_SHOWN),
        )
        for email in page.emails
    ]
    if page.following is None:
        return entries, None
    return entries, TimelinePosition(_instant_of(page.following), page.following)


async def _runs(db: TeamDb, contact_id: UUID, before: TimelinePosition) -> list[ContactEntry]:
    return [
        ContactEntry(
            position=TimelinePosition(run.created_at, run.id),
            title=t("contact.happened.run", event=run.event_name),
            tone={"failed": "bad", "completed": "good"}.get(run.status, QUIET),
            name=run.name,
            href=f"/dashboard/automations/{run.automation_id}/runs/{run.id}",
            steps=_run_steps(run.status, run.completed_at),
        )
        for run in await runs_of_contact(db, contact_id, _id_at(before), ROWS + 1)
    ]


def _run_steps(status: str, completed_at: datetime | None) -> list[ContactStep]:
    if completed_at is None:
        return []
    return [ContactStep(iso_style(completed_at), t(f"contact.run.{status}"))]


async def _received(db: TeamDb, addresses: Collection[str], before: TimelinePosition) -> list[ContactEntry]:
    return [
        ContactEntry(
            position=TimelinePosition(mail.created_at, mail.id),
            title=t("contact.happened.received"),
            tone="info",
            name=mail.subject or t("email.no_subject"),
            href=f"/dashboard/emails/receiving/{mail.id}",
        )
        for address in addresses
        for mail in await mail_from(db, address, _upper(before) or NEWEST, ROWS + 1)
    ]


async def _events(db: TeamDb, contact_id: UUID, before: TimelinePosition) -> list[ContactEntry]:
    return [
        ContactEntry(
            position=TimelinePosition(event.last_at, event.id),
            title=t("contact.happened.event"),
            tone="info",
            name=event.name,
            href=None,
            steps=_repeated(event.first_at, event.occurrences),
        )
        for event in await events_of_contact(db, contact_id, before, ROWS + 1)
    ]


def _repeated(first_at: datetime, occurrences: int) -> list[ContactStep]:
    if occurrences < 2:
        return []
    return [
        ContactStep(None, t("contact.times", count=occurrences)),
        ContactStep(iso_style(first_at), t("contact.first_time")),
    ]


async def _sign_ups(db: TeamDb, address: str, before: TimelinePosition) -> list[ContactEntry]:
    return [
        ContactEntry(
            position=TimelinePosition(row.requested_at, row.id),
            title=t("contact.happened.sign_up" if row.form_name else "contact.happened.sign_up_gone"),
            tone=QUIET if row.confirmed_at is None else "good",
            name=row.form_name,
            href=f"{FORM}{row.form_id}" if row.form_name else None,
            steps=[_confirmation(row.confirmed_at, row.expires_at)],
            note=row.consent_text or None,
        )
        for row in await sign_ups_of_address(db, address, before, ROWS + 1)
    ]


def _confirmation(confirmed_at: datetime | None, expires_at: datetime) -> ContactStep:
    if confirmed_at is None:
        return ContactStep(iso_style(expires_at), t("contact.unconfirmed"))
    return ContactStep(iso_style(confirmed_at), t("contact.confirmed"))


async def _moments(db: TeamDb, contact_id: UUID) -> list[ContactEntry]:
    return [
        ContactEntry(
            position=TimelinePosition(moment.at, moment.id),
            title=t(f"contact.happened.{moment.kind}"),
            tone="warn" if moment.kind == "opt_out" else "info",
            name=moment.name or (t("imports.by_api") if moment.kind == "imported" else None),
            href=f"{LEADS_TO[moment.kind]}{moment.id}" if moment.kind in LEADS_TO else None,
            note=moment.note,
        )
        for moment in await contact_moments(db, contact_id)
    ]


async def _suppression(db: TeamDb, address: str) -> list[ContactEntry]:
    entry = await suppressed_address(db, address)
    if entry is None:
        return []
    return [
        ContactEntry(
            position=TimelinePosition(entry.created_at, entry.id),
            title=t(f"contact.happened.suppressed.{entry.origin}"),
            tone="bad",
            name=None,
            href=f"/dashboard/suppressions/{entry.id}",
        )
    ]


def steps_of(events: Sequence[EventOfRecipient]) -> list[ContactStep]:
    """Return what became of a mail, without what every mail begins with."""
    steps = []
    for event in events:
        if event.kind in ("queued", "scheduled"):
            continue
        title = (
            t(f"state.{event.kind}") if has_text(f"state.{event.kind}") else t("contact.unsubscribed_by_mail")
        )
        steps.append(ContactStep(iso_style(event.at), title))
    return steps


def _upper(position: TimelinePosition) -> UUID | None:
    """Return the id that mails before a position are below."""
    if position == START:
        return None
    end = _id_at(position)
    return position.id if first_id(position.at) <= position.id < end else end


def _id_at(position: TimelinePosition) -> UUID:
    """Return an id that is greater than those of everything up to the position's instant."""
    if position.at >= LATEST:
        return NEWEST
    return first_id(position.at + MICROSECOND)


def _instant_of(email_id: UUID) -> datetime:
    """Return the instant of a time-ordered id."""
    fraction = min(email_id.int >> 64 & 0xFFF, 999)
    return EPOCH + timedelta(milliseconds=email_id.int >> 80, microseconds=fraction)
