"""Shapes of the endpoints of forms (forms.md); field order is the contract's."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec import field as struct_field

from pillarbox.forms import form_settings
from pillarbox.forms.form_settings import (
    MOST_FIELDS,
    MOST_TOPICS,
    FormSettings,
    StoredField,
    StoredTexts,
    StoredTheme,
)
from pillarbox.forms.queries import FormRow
from pillarbox.forms.sign_up_queries import SignUpRow
from pillarbox.kernel.wire.instants import IsoTime, iso_style
from pillarbox.kernel.wire.problems import InvalidField

Name = Annotated[str, Meta(max_length=100, extra={"trimmed": True})]
OtherName = Annotated[str, Meta(min_length=1, max_length=100, extra={"trimmed": True})]
Sender = Annotated[str, Meta(max_length=400, extra={"trimmed": True})]
Subject = Annotated[str, Meta(max_length=200, extra={"trimmed": True})]
Short = Annotated[str, Meta(max_length=100, extra={"trimmed": True})]
Long = Annotated[str, Meta(max_length=1000, extra={"trimmed": True})]
Url = Annotated[str, Meta(max_length=500, extra={"trimmed": True})]
Key = Annotated[str, Meta(min_length=1, max_length=50)]
Label = Annotated[str, Meta(min_length=1, max_length=100, extra={"trimmed": True})]


class FormFieldInput(Struct, kw_only=True):
    """A field beside the address: `first_name`, `last_name` or the key of a property."""

    key: Key
    label: Label
    required: bool = False


class FormTextsInput(Struct, kw_only=True):
    """The words of the pages; an empty one is ours, in the language of the visitor."""

    title: Short | None = None
    text: Long | None = None
    button: Short | None = None
    consent: Long | None = None
    sent: Long | None = None
    confirmed: Long | None = None


class FormThemeInput(Struct, kw_only=True):
    """The look; an empty one is that of the team's page to unsubscribe."""

    logo_url: Url | None = None
    page_color: Short | None = None
    text_color: Short | None = None
    button_color: Short | None = None


Fields = Annotated[list[FormFieldInput], Meta(max_length=MOST_FIELDS)]
TopicIds = Annotated[list[UUID], Meta(max_length=MOST_TOPICS)]


class NewForm(Struct, kw_only=True):
    name: Name
    sender: Sender = struct_field(name="from")
    subject: Subject | None = None
    template_id: UUID | None = None
    fields: Fields | None = None
    topic_ids: TopicIds | None = None
    lets_choose_topics: bool = False
    segment_id: UUID | None = None
    texts: FormTextsInput | None = None
    theme: FormThemeInput | None = None
    redirect_url: Url | None = None
    confirmed_url: Url | None = None
    open: bool = True


class ChangedForm(Struct, kw_only=True):
    """`updated_at` may be named: the change is refused where the form was changed since."""

    name: OtherName | UnsetType = UNSET
    sender: Sender | UnsetType = struct_field(name="from", default=UNSET)
    subject: Subject | UnsetType | None = UNSET
    template_id: UUID | UnsetType | None = UNSET
    fields: Fields | UnsetType | None = UNSET
    topic_ids: TopicIds | UnsetType | None = UNSET
    lets_choose_topics: bool | UnsetType = UNSET
    segment_id: UUID | UnsetType | None = UNSET
    texts: FormTextsInput | UnsetType | None = UNSET
    theme: FormThemeInput | UnsetType | None = UNSET
    redirect_url: Url | UnsetType | None = UNSET
    confirmed_url: Url | UnsetType | None = UNSET
    open: bool | UnsetType = UNSET
    updated_at: str | UnsetType = UNSET


class FormRef(Struct, kw_only=True):
    object: Literal["form"]
    id: UUID


class FormField(Struct, kw_only=True):
    """A field that the form asks for beside the address."""

    key: str
    label: str
    required: bool


class FormTexts(Struct, kw_only=True):
    """The words of the pages; null: ours, in the language of the visitor."""

    title: str | None
    text: str | None
    button: str | None
    consent: str | None
    sent: str | None
    confirmed: str | None


class FormTheme(Struct, kw_only=True):
    """The look; null: that of the team's page to unsubscribe."""

    logo_url: str | None
    page_color: str | None
    text_color: str | None
    button_color: str | None


class FormCounts(Struct, kw_only=True):
    """How often the page was shown, and how many mails were sent and confirmed."""

    shown: int
    sent: int
    confirmed: int


class FormItem(Struct, kw_only=True):
    id: UUID
    name: str
    open: bool
    url: str
    counts: FormCounts
    created_at: IsoTime


class FullForm(Struct, kw_only=True):
    object: Literal["form"]
    id: UUID
    name: str
    sender: str = struct_field(name="from")
    subject: str | None
    template_id: UUID | None
    fields: list[FormField]
    topic_ids: list[UUID]
    lets_choose_topics: bool
    segment_id: UUID | None
    texts: FormTexts
    theme: FormTheme
    redirect_url: str | None
    confirmed_url: str | None
    open: bool
    url: str
    html: str
    counts: FormCounts
    created_at: IsoTime
    updated_at: IsoTime


class FormDeleted(Struct, kw_only=True):
    object: Literal["form"]
    id: UUID
    deleted: Literal[True]


SignUpStatus = Literal["waiting", "confirmed", "expired"]


class FormSignUp(Struct, kw_only=True):
    """An address that was given to the form, and what its owner consented to."""

    id: UUID
    email: str
    status: SignUpStatus
    requested_at: IsoTime
    requested_from: str
    confirmed_at: IsoTime | None
    confirmed_from: str | None
    consent_text: str
    contact_id: UUID | None


TEXTS: Final = tuple(StoredTexts.__struct_fields__)
LOOKS: Final = tuple(StoredTheme.__struct_fields__)


def settings_of(new: NewForm) -> FormSettings:
    """Return the settings that a request asks for."""
    return changed(FormSettings(sender=new.sender), new)


def changed(settings: FormSettings, change: NewForm | ChangedForm) -> FormSettings:
    """Return the settings with what a request gives of them."""
    given: dict[str, Any] = {}
    for name in ("sender", "template_id", "lets_choose_topics", "segment_id"):
        if (value := getattr(change, name)) is not UNSET:
            given[name] = value
    if change.subject is not UNSET:
        given["subject"] = one_line(change.subject or "", "subject")
    if change.fields is not UNSET:
        given["fields"] = _fields(change.fields or [])
    if change.topic_ids is not UNSET:
        given["topic_ids"] = list(dict.fromkeys(change.topic_ids or []))
    if change.texts is not UNSET:
        texts = change.texts or FormTextsInput()
        given["texts"] = StoredTexts(**{name: plain(getattr(texts, name) or "") for name in TEXTS})
    if change.theme is not UNSET:
        theme = change.theme or FormThemeInput()
        given["theme"] = form_settings.theme_of({name: getattr(theme, name) or "" for name in LOOKS})
    for name in ("redirect_url", "confirmed_url"):
        if (value := getattr(change, name)) is not UNSET:
            given[name] = form_settings.web_address(value or "", name)
    return msgspec.structs.replace(settings, **given)


def _fields(given: list[FormFieldInput]) -> list[StoredField]:
    keys = [one.key for one in given]
    if len(set(keys)) < len(keys):
        raise InvalidField("fields", "Each key may be there once.")
    return [StoredField(one.key, one_line(one.label, "fields.label"), one.required) for one in given]


def one_line(text: str, path: str) -> str:
    """Return a text of one line; 422 where it has control characters."""
    if not text.isprintable():
        raise InvalidField(path, "It may have no line breaks and no control characters.")
    return text


def plain(text: str) -> str:
    """Return a text of lines without other control characters."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join("".join(char for char in line if char.isprintable()) for line in lines).strip()


def counts(row: FormRow) -> FormCounts:
    return FormCounts(shown=row.shown, sent=row.sent, confirmed=row.confirmed)


def item(row: FormRow, url: str) -> FormItem:
    return FormItem(
        id=row.id,
        name=row.name,
        open=row.is_open,
        url=url,
        counts=counts(row),
        created_at=iso_style(row.created_at),
    )


def full(row: FormRow, url: str, html: str) -> FullForm:
    settings = form_settings.read(row.settings)
    return FullForm(
        object="form",
        id=row.id,
        name=row.name,
        sender=settings.sender,
        subject=settings.subject or None,
        template_id=settings.template_id,
        fields=[FormField(key=one.key, label=one.label, required=one.required) for one in settings.fields],
        topic_ids=settings.topic_ids,
        lets_choose_topics=settings.lets_choose_topics,
        segment_id=settings.segment_id,
        texts=FormTexts(**{name: getattr(settings.texts, name) or None for name in TEXTS}),
        theme=FormTheme(**{name: getattr(settings.theme, name) or None for name in LOOKS}),
        redirect_url=settings.redirect_url,
        confirmed_url=settings.confirmed_url,
        open=row.is_open,
        url=url,
        html=html,
        counts=counts(row),
        created_at=iso_style(row.created_at),
        updated_at=iso_style(row.updated_at),
    )


def sign_up(row: SignUpRow, now: Any) -> FormSignUp:
    status: SignUpStatus = "waiting" if row.expires_at > now else "expired"
    if row.confirmed_at is not None:
        status = "confirmed"
    return FormSignUp(
        id=row.id,
        email=row.email,
        status=status,
        requested_at=iso_style(row.requested_at),
        requested_from=row.client,
        confirmed_at=None if row.confirmed_at is None else iso_style(row.confirmed_at),
        confirmed_from=row.confirmed_client,
        consent_text=row.consent_text,
        contact_id=row.contact_id,
    )
