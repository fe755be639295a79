"""Confirms sign-ups: who clicks in the mail and presses the button is added, once.

The consent is recorded with its time, the network of both requests and the words that were shown, in the
transaction that adds the contact.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from enum import Enum
from typing import Any

import asyncpg
import msgspec
from msgspec import UNSET

from pillarbox.contact_properties.definitions import definitions, wrong
from pillarbox.contacts import reading
from pillarbox.contacts.change import ContactChange, ContactMemberships
from pillarbox.contacts.store import Contacts, id_of
from pillarbox.forms import form_settings, queries, sign_up_queries
from pillarbox.forms.form_links import ConfirmationLink
from pillarbox.forms.form_settings import NAMES
from pillarbox.forms.queries import OpenForm
from pillarbox.forms.sign_up_queries import SignUpRow
from pillarbox.forms.submissions import SignUpContent
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.process import faults
from pillarbox.kernel.wire.email_address import email_address
from pillarbox.suppressions.erased_addresses import AddressErased


class ConfirmationState(Enum):
    """The state of the link of a mail."""

    WAITING = "waiting"
    CONFIRMED = "confirmed"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class FoundSignUp:
    """The sign-up of a link, with its form and its state."""

    form: OpenForm
    sign_up: SignUpRow
    state: ConfirmationState


@dataclass(frozen=True, slots=True)
class Confirmations:
    """Confirms sign-ups."""

    pool: asyncpg.Pool
    clock: Clock
    contacts: Contacts

    async def find(self, link: ConfirmationLink) -> FoundSignUp | None:
        """Return the sign-up of a link; None where there is none, or the secret is another."""
        db = TeamDb(self.pool, link.team_id)
        return await self._found(db, link, await sign_up_queries.find(db, link.sign_up_id))

    async def confirm(self, link: ConfirmationLink, client: str) -> FoundSignUp | None:
        """Add the person of a link, once, and record the consent; return the state before.

        None where there is no such sign-up. What came after its end, or a second time, changes nothing."""
        async with TeamDb(self.pool, link.team_id).transaction() as db:
            found = await self._found(db, link, await sign_up_queries.find(db, link.sign_up_id))
            if found is None or found.state is not ConfirmationState.WAITING:
                return found
            await queries.hold(db, found.form.id)
            found = await self._found(db, link, await sign_up_queries.lock(db, link.sign_up_id))
            if found is None or found.state is not ConfirmationState.WAITING:
                return found
            try:
                contact_id = await self._add(db, found)
            except AddressErased:
                # Their erasure is under way, and takes the sign-up with it.
                return None
            await sign_up_queries.confirm(db, link.sign_up_id, contact_id, client, self.clock.now())
            await queries.add_confirmed(db, found.form.id)
            await faults.point("forms.confirmed")
        return found

    async def _found(self, db: TeamDb, link: ConfirmationLink, row: SignUpRow | None) -> FoundSignUp | None:
        if row is None or not hmac.compare_digest(row.digest, link.digest):
            return None
        form = await queries.find_any(db, row.form_id)
        if form is None:
            return None
        if row.confirmed_at is not None:
            return FoundSignUp(form, row, ConfirmationState.CONFIRMED)
        is_over = row.expires_at <= self.clock.now()
        return FoundSignUp(form, row, ConfirmationState.EXPIRED if is_over else ConfirmationState.WAITING)

    async def _add(self, db: TeamDb, located: FoundSignUp) -> Any:
        """Add the contact, or change the one that is there; return its id.

        The values were typed by whoever filled in the form, so those that a contact has stay."""
        content = msgspec.json.decode(located.sign_up.content, type=SignUpContent)
        settings = form_settings.read(located.form.settings)
        types = {one.key: one.type for one in await definitions(db)} if content.values else {}
        names = {key: value for key, value in content.values.items() if key in NAMES}
        # A property may have been deleted since, and made anew with another type.
        properties = {
            key: value
            for key, value in content.values.items()
            if key in types and wrong(value, types[key]) is None
        }
        contact_id = await id_of(db, located.sign_up.address)
        if contact_id is not None:
            contact = await reading.shown(db, contact_id)
            names = {key: value for key, value in names.items() if getattr(contact, key) is None}
            set_ones = msgspec.json.decode(contact.properties)
            properties = {key: value for key, value in properties.items() if key not in set_ones}
        segment = settings.segment_id
        segments = [segment] if segment and await queries.is_kept_by_hand(db, segment) else []
        topics = await queries.topics(db, content.topic_ids) if content.topic_ids else []
        stored = await self.contacts.upsert(
            db,
            email_address(located.sign_up.email),
            ContactChange(
                first_name=names.get("first_name", UNSET),
                last_name=names.get("last_name", UNSET),
                unsubscribed=False,
                properties=properties,
            ),
            ContactMemberships(segments, {one.id: "opt_in" for one in topics}),
        )
        return stored.id
