"""Takes what strangers send to a form: an address with values, which wait for a click in a mail.

Nobody learns whether an address is known: the answer is the same, whoever has it. An address gets a mail an
hour from all forms of a team; a form sends a bounded number an hour, and for one network fewer. Nothing that
a stranger typed stands in the mail, so a form carries nobody's words to others.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import parse_qsl
from uuid import UUID

import asyncpg
import msgspec

from pillarbox.contacts.imports import cells
from pillarbox.contacts.imports.cells import RowFault
from pillarbox.emails.accept import Accept, AuthorizedEmail
from pillarbox.emails.requests.parse import outgoing
from pillarbox.emails.requests.templating import TemplateRendering
from pillarbox.forms import queries, sign_up_queries
from pillarbox.forms.form_links import SECRET, confirmation_path, digest_of
from pillarbox.forms.form_settings import CONFIRM_URL
from pillarbox.forms.queries import OpenForm
from pillarbox.forms.screens import ConfirmationMail
from pillarbox.forms.sign_up_pages import TRAP, ShownForm, SignUpPages
from pillarbox.forms.sign_up_queries import NewSignUp
from pillarbox.kernel.ids import Ids, first_id
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.process import faults
from pillarbox.kernel.security.authentication import Caller, Permission
from pillarbox.kernel.wire.email_address import EmailAddress, NotAnAddress, email_address
from pillarbox.kernel.wire.problems import Problem
from pillarbox.suppressions.erased_addresses import ErasedAddresses
from pillarbox.templates.published import published

log = get("forms")

ADDRESS_GAP: Final = timedelta(hours=1)
WINDOW: Final = timedelta(hours=1)
MOST_OF_FORM: Final = 1000
MOST_OF_NETWORK: Final = 30
"""Mails of a form within `WINDOW`: in all, and for one network."""

VALID_FOR: Final = timedelta(days=3)
"""How long the link in the mail can be used."""

MOST_FIELDS: Final = 60
LONGEST_VALUE: Final = 500
EMAIL: Final = "email"
TOPIC: Final = "topic"


class FieldFault(Enum):
    """A fault of a field."""

    MISSING = "missing"
    INVALID = "invalid"


class SubmissionOutcome(Enum):
    """The end of a submission; the first four look the same to the visitor."""

    SENT = "sent"
    RECENT = "recent"
    ERASED = "erased"
    TRAPPED = "trapped"
    TOO_MANY = "too_many"
    CLOSED = "closed"
    UNAVAILABLE = "unavailable"


class SignUpContent(msgspec.Struct, frozen=True):
    """The values and the topics of a sign-up, as they are stored until it is confirmed."""

    values: dict[str, Any]
    topic_ids: list[UUID]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledForm:
    """A form that was filled in without fault."""

    address: EmailAddress
    content: SignUpContent


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionOrigin:
    """The origin of a submission: the address of the connection."""

    client: str

    @property
    def network(self) -> str:
        """The network that counts as one sender: the /24 of an IPv4 address, the /48 of an IPv6 one."""
        try:
            address = ip_address(self.client.partition("%")[0])
        except ValueError:
            return self.client
        mapped = getattr(address, "ipv4_mapped", None) or address
        if mapped.version == 4:
            return str(mapped).rpartition(".")[0]
        return str(mapped.exploded)[:14]


def fields_of(raw: bytes) -> list[tuple[str, str]] | None:
    """Return the fields of a form's body; None where it is none, or has too many."""
    try:
        pairs = parse_qsl(
            raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS
        )
    except ValueError:
        return None
    return None if any("\0" in value for pair in pairs for value in pair) else pairs


def is_trapped(fields: Sequence[tuple[str, str]]) -> bool:
    """Return whether the field that people do not see was filled in."""
    return any(name == TRAP and value.strip() for name, value in fields)


def submission_of(
    form: ShownForm, fields: Sequence[tuple[str, str]]
) -> tuple[FilledForm | None, dict[str, FieldFault]]:
    """Return what the fields of a form say, or what is wrong with which of them."""
    given = dict(reversed(fields))
    faults: dict[str, FieldFault] = {}
    address = _address(given.get(EMAIL, ""), faults)
    values: dict[str, Any] = {}
    for one in form.fields:
        text = given.get(one.name, "").strip()
        if not text:
            if one.required:
                faults[one.name] = FieldFault.MISSING
            continue
        try:
            values[one.key] = _value(one.key, one.kind, text)
        except RowFault:
            faults[one.name] = FieldFault.INVALID
    chosen = {value for name, value in fields if name == TOPIC}
    topics = [one.id for one in form.topics if not form.lets_choose or str(one.id) in chosen]
    if faults or address is None:
        return None, faults
    return FilledForm(address=address, content=SignUpContent(values, topics)), faults


def _address(text: str, faults: dict[str, FieldFault]) -> EmailAddress | None:
    text = text.strip()
    if not text:
        faults[EMAIL] = FieldFault.MISSING
        return None
    try:
        return email_address(text)
    except NotAnAddress:
        faults[EMAIL] = FieldFault.INVALID
        return None


def _value(key: str, kind: str, text: str) -> Any:
    """Return the value of a field; raise RowFault where it is none."""
    if kind == "number":
        return msgspec.json.decode(cells.number_of(text))
    if kind == "boolean":
        return cells.boolean_of("true" if text.lower() == "on" else text) == "true"
    if len(text) > (cells.LONGEST_NAME if key in ("first_name", "last_name") else LONGEST_VALUE):
        raise RowFault(cells.VALUE_TOO_LONG)
    return cells.name_of(text) if len(text) <= cells.LONGEST_NAME else text


@dataclass(frozen=True, slots=True)
class Submissions:
    """Takes submissions."""

    pool: asyncpg.Pool
    ids: Ids
    accept: Accept
    templating: TemplateRendering
    pages: SignUpPages
    erased: ErasedAddresses

    async def take(
        self,
        row: OpenForm,
        form: ShownForm,
        submission: FilledForm,
        visitor: SubmissionOrigin,
        consent_text: str,
        write_mail: Callable[[str], ConfirmationMail],
    ) -> SubmissionOutcome:
        """Store a submission and send its mail, in one transaction, unless a bound forbids it. `write_mail`
        gets the address of the page to confirm."""
        db = TeamDb(self.pool, form.team_id)
        stamp, secret = self.ids.stamp(), secrets.token_bytes(SECRET)
        url = self.pages.public_url.rstrip("/") + confirmation_path(form.team_id, stamp.id, secret)
        caller = Caller(
            form.team_id,
            row.team_number,
            None,
            Permission.FULL,
            daily_quota=row.daily_quota,
            monthly_quota=row.monthly_quota,
        )
        try:
            # What a bound forbids makes no mail: the sender may have a limit that each mail counts against.
            bound = await self._bound(db, form.form_id, submission, visitor, stamp.at)
            if bound is not None:
                return bound
            email = await self._email(db, caller, form, submission.address.shown, url, write_mail, stamp.at)
            async with db.transaction() as inside:
                await sign_up_queries.hold_form(inside, form.form_id)
                await sign_up_queries.hold_address(inside, submission.address.address)
                bound = await self._bound(inside, form.form_id, submission, visitor, stamp.at)
                if bound is not None:
                    return bound
                if not await queries.add_sent(inside, form.form_id):
                    return SubmissionOutcome.CLOSED
                await sign_up_queries.insert(
                    inside,
                    NewSignUp(
                        id=stamp.id,
                        form_id=form.form_id,
                        address=submission.address.address,
                        email=submission.address.shown,
                        digest=digest_of(secret),
                        content=msgspec.json.encode(submission.content).decode(),
                        consent_text=consent_text,
                        client=visitor.client,
                        network=visitor.network,
                        requested_at=stamp.at,
                        expires_at=stamp.at + VALID_FOR,
                    ),
                )
                await self.accept.store_in(inside.connection, caller, email)
                await faults.point("forms.mail_written")
        except Problem as problem:
            # The domain is not verified, a quota is used up, or no mail can be taken now.
            log.warning("forms.no_mail", team=form.team_id, form=form.form_id, problem=problem.name)
            return SubmissionOutcome.UNAVAILABLE
        return SubmissionOutcome.SENT

    async def _bound(
        self, db: TeamDb, form_id: UUID, submission: FilledForm, visitor: SubmissionOrigin, now: datetime
    ) -> SubmissionOutcome | None:
        """Return the bound that the submission meets; None where it may be stored."""
        recent = await sign_up_queries.recent(db, form_id, first_id(now - WINDOW), visitor.network)
        if recent.of_form >= MOST_OF_FORM or recent.of_network >= MOST_OF_NETWORK:
            return SubmissionOutcome.TOO_MANY
        address = submission.address.address
        if await sign_up_queries.has_recent(db, address, now - ADDRESS_GAP):
            return SubmissionOutcome.RECENT
        if await self.erased.among(db.source, db.team_id, [address]):
            return SubmissionOutcome.ERASED
        return None

    async def _email(
        self,
        db: TeamDb,
        caller: Caller,
        form: ShownForm,
        to: str,
        url: str,
        write_mail: Callable[[str], ConfirmationMail],
        now: datetime,
    ) -> AuthorizedEmail:
        """Return the mail, once the team may send it."""
        settings = form.settings
        body: dict[str, Any] = {
            "from": settings.sender,
            "to": [to],
            "headers": {"Auto-Submitted": "auto-generated"},
        }
        if settings.template_id is None:
            words = write_mail(url)
            body |= {"subject": settings.subject or words.subject, "html": words.html, "text": words.text}
            return await self.accept.check(caller, outgoing(body, now))
        name = str(settings.template_id)
        body["template"] = {"id": name, "variables": {CONFIRM_URL: url}}
        if settings.subject:
            body["subject"] = settings.subject
        mail = outgoing(body, now, await published(db, [name]))
        return await self.accept.check(caller, await self.templating.one(db, mail))
