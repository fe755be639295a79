"""Changes of forms: what a form names must be there when it is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from msgspec import UNSET

from pillarbox.contact_properties.definitions import definitions
from pillarbox.emails.requests.parse import mailboxes
from pillarbox.forms import form_settings, queries, sign_up_queries, wire
from pillarbox.forms.form_settings import CONFIRM_URL, MOST_FORMS, NAMES, FormSettings
from pillarbox.forms.queries import FormRow
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.instants import iso_style
from pillarbox.kernel.wire.problems import Conflict, InvalidField, NotFound
from pillarbox.teams.allowances import TooMany
from pillarbox.templates.published import published


@dataclass(frozen=True, slots=True)
class FormChanges:
    """Writes forms."""

    ids: Ids

    async def create(self, db: TeamDb, new: wire.NewForm) -> UUID:
        """Make a form; 404 or 422 where it names what is not there, 403 for one too many."""
        settings = wire.settings_of(new)
        await check(db, settings)
        if await queries.count(db) >= MOST_FORMS:
            raise TooMany(MOST_FORMS, "forms")
        stamp = self.ids.stamp()
        name = wire.one_line(new.name, "name")
        await queries.insert(db, stamp.id, name, form_settings.written(settings), stamp.at, is_open=new.open)
        return stamp.id

    async def change(self, db: TeamDb, form_id: UUID, change: wire.ChangedForm) -> None:
        """Change what is given of a form; 409 where it was changed since `updated_at`."""
        row = await queries.lock(db, form_id)
        if row is None:
            raise NotFound("Form")
        if change.updated_at is not UNSET and change.updated_at != iso_style(row.updated_at):
            raise Conflict("Somebody else has changed the form. Load it again.")
        settings = wire.changed(form_settings.read(row.settings), change)
        await check(db, settings)
        name = row.name if change.name is UNSET else wire.one_line(change.name, "name")
        is_open = row.is_open if change.open is UNSET else change.open
        await queries.change(
            db, form_id, name, form_settings.written(settings), self.ids.now(), is_open=is_open
        )

    async def delete(self, db: TeamDb, form_id: UUID) -> None:
        """Delete a form with what waits for a click; what people consented to is kept."""
        if not await queries.delete(db, form_id, self.ids.now()):
            raise NotFound("Form")
        await sign_up_queries.remove_unconfirmed(db, form_id)


async def find(db: TeamDb, form_id: UUID) -> FormRow:
    """Return a form; 404 where the team has none."""
    row = await queries.one(db, form_id)
    if row is None:
        raise NotFound("Form")
    return row


async def kinds_of(db: TeamDb, settings: FormSettings) -> Mapping[str, str]:
    """Return the types of the form's fields by their keys; one whose property was deleted is left out."""
    types = {one.key: one.type for one in await definitions(db)} if settings.fields else {}
    known = {**types, **dict.fromkeys(NAMES, "string")}
    return {one.key: known[one.key] for one in settings.fields if one.key in known}


async def check(db: TeamDb, settings: FormSettings) -> None:
    """Raise what is wrong with the settings of a form."""
    _, senders = mailboxes("from", settings.sender)
    if len(senders) != 1:
        raise InvalidField("from", "It must be one address.")
    known = await kinds_of(db, settings)
    for one in settings.fields:
        if one.key not in known:
            raise InvalidField("fields", f"There is no property `{one.key[:50]}`.")
    if len(await queries.topics(db, settings.topic_ids)) < len(settings.topic_ids):
        raise NotFound("Topic")
    if settings.segment_id is not None:
        is_kept_by_hand = await queries.is_kept_by_hand(db, settings.segment_id)
        if is_kept_by_hand is None:
            raise NotFound("Segment")
        if not is_kept_by_hand:
            raise InvalidField("segment_id", "The members of this segment follow from its conditions.")
    if settings.template_id is not None:
        await _check_template(db, settings.template_id)


async def _check_template(db: TeamDb, template_id: UUID) -> None:
    template = (await published(db, [str(template_id)])).get(str(template_id))
    if template is None:
        raise NotFound("Template")
    if not template.is_published or template.content is None:
        raise InvalidField("template_id", "The template is not published.")
    variables = {one.key: one for one in template.content.variables}
    if CONFIRM_URL not in variables or variables[CONFIRM_URL].type != "string":
        raise InvalidField("template_id", f"The template needs the text variable `{CONFIRM_URL}`.")
    for one in variables.values():
        if one.key != CONFIRM_URL and one.fallback_value is None:
            raise InvalidField("template_id", f"The variable `{one.key[:50]}` needs a fallback.")
