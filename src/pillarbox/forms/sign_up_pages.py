"""A form as strangers see it: its address, its fields with their types, and its snippet for another site."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from markupsafe import escape

from pillarbox.forms import changes, form_settings, page_queries, queries
from pillarbox.forms.form_links import form_path
from pillarbox.forms.form_settings import FormSettings, StoredTexts
from pillarbox.forms.queries import FormRow, NamedThing, OpenForm
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.unsubscribe import page_settings
from pillarbox.unsubscribe.page_settings import UnsubscribePageSettings

TRAP: Final = "website"
"""The name of a field that people do not see; programs that fill in everything fill it in."""

TRAP_STYLE: Final = "position:absolute;left:-6000px"
INPUT_TYPES: Final = {"string": "text", "number": "number", "boolean": "checkbox"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownField:
    """A field of the page; `name` is the one that the browser sends."""

    key: str
    name: str
    label: str
    kind: str
    required: bool

    @property
    def input_type(self) -> str:
        return INPUT_TYPES[self.kind]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownForm:
    """A form as a page or a mail shows it. `topics` can be chosen where `lets_choose`."""

    team_id: UUID
    form_id: UUID
    name: str
    team_name: str
    settings: FormSettings
    fields: Sequence[ShownField]
    topics: Sequence[NamedThing]
    look: UnsubscribePageSettings

    @property
    def lets_choose(self) -> bool:
        """Whether the visitor chooses topics."""
        return self.settings.lets_choose_topics and bool(self.topics)

    @property
    def texts(self) -> StoredTexts:
        """The form's own words."""
        return self.settings.texts


@dataclass(frozen=True, slots=True)
class SignUpPages:
    """Makes what strangers see of forms."""

    public_url: str

    def url_of(self, team_id: UUID, form_id: UUID) -> str:
        """Return the address of the hosted page."""
        return self.public_url.rstrip("/") + form_path(team_id, form_id)

    async def shown(self, db: TeamDb, row: OpenForm) -> ShownForm:
        """Return a form with its fields and topics, those of them that are there."""
        settings = form_settings.read(row.settings)
        return await self.of_settings(db, row.id, row.name, row.team_name, settings)

    async def of_settings(
        self, db: TeamDb, form_id: UUID, name: str, team_name: str, settings: FormSettings
    ) -> ShownForm:
        """Return a form of these settings, stored or not."""
        kinds = await changes.kinds_of(db, settings)
        return ShownForm(
            team_id=db.team_id,
            form_id=form_id,
            name=name,
            team_name=team_name,
            settings=settings,
            fields=[
                ShownField(
                    key=one.key,
                    name=f"field_{one.key}",
                    label=one.label,
                    kind=kinds[one.key],
                    required=one.required,
                )
                for one in settings.fields
                if one.key in kinds
            ],
            topics=await queries.topics(db, settings.topic_ids) if settings.topic_ids else [],
            look=form_settings.look_of(settings.theme, await page_settings.settings_of(db)),
        )

    async def snippet_of(self, db: TeamDb, row: FormRow) -> str:
        """Return the HTML of the form for another site. It needs no script and no style sheet."""
        settings = form_settings.read(row.settings)
        team_name = await page_queries.team_name(db)
        form = await self.of_settings(db, row.id, row.name, team_name, settings)
        lines = [f'<form action="{escape(self.url_of(db.team_id, row.id))}" method="post">']
        lines.append(
            '  <p><label>Email <input type="email" name="email" required autocomplete="email"></label></p>'
        )
        for one in form.fields:
            lines.append(f"  <p><label>{escape(one.label)} {_input(one)}</label></p>")
        if form.lets_choose:
            for topic in form.topics:
                box = f'<input type="checkbox" name="topic" value="{topic.id}">'
                lines.append(f"  <p><label>{box} {escape(topic.name)}</label></p>")
        lines.append(
            f'  <p style="{TRAP_STYLE}" aria-hidden="true"><label>Leave this empty '
            f'<input name="{TRAP}" tabindex="-1" autocomplete="off"></label></p>'
        )
        if form.texts.consent:
            lines.append(f"  <p>{escape(form.texts.consent)}</p>")
        lines.append(f"  <p><button>{escape(form.texts.button or 'Sign up')}</button></p>")
        return "\n".join([*lines, "</form>"]) + "\n"


def _input(field: ShownField) -> str:
    required = " required" if field.required else ""
    step = ' step="any"' if field.kind == "number" else ""
    value = ' value="true"' if field.kind == "boolean" else ""
    return f'<input type="{field.input_type}" name="{escape(field.name)}"{value}{step}{required}>'
