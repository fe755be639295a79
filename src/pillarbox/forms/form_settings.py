"""The settings of a form, as they are stored, and what must fit for them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal
from urllib.parse import urlsplit
from uuid import UUID

import msgspec

from pillarbox.kernel.wire.problems import InvalidField
from pillarbox.unsubscribe import page_settings
from pillarbox.unsubscribe.page_settings import UnsubscribePageSettings

MOST_FORMS: Final = 100
MOST_FIELDS: Final = 20
MOST_TOPICS: Final = 20
LONGEST_URL: Final = 500
NAMES: Final = ("first_name", "last_name")
"""Fields of a contact that a form may ask for beside its properties."""

CONFIRM_URL: Final = "CONFIRM_URL"
"""The variable of a template that becomes the link to confirm."""

Kind = Literal["string", "number", "boolean"]
_URL: Final = re.compile(
    r"https?://[A-Za-z0-9.-]{1,253}(:[0-9]{1,5})?(/[!#$&-;=?-Z_a-z~%]*)?(\?[!#$&-;=?-Z_a-z~%]*)?"
)


class StoredField(msgspec.Struct, frozen=True, omit_defaults=True):
    """A field that a form asks for: a name of the contact, or one of the team's properties."""

    key: str
    label: str
    required: bool = False


class StoredTexts(msgspec.Struct, frozen=True, omit_defaults=True):
    """The words of a form; those that are empty are ours."""

    title: str = ""
    text: str = ""
    button: str = ""
    consent: str = ""
    sent: str = ""
    confirmed: str = ""


class StoredTheme(msgspec.Struct, frozen=True, omit_defaults=True):
    """The look of a form; what is empty is that of the team's page to unsubscribe."""

    logo_url: str = ""
    page_color: str = ""
    text_color: str = ""
    button_color: str = ""


class FormSettings(msgspec.Struct, frozen=True, omit_defaults=True):
    """All that a form is besides its name."""

    sender: str
    subject: str = ""
    template_id: UUID | None = None
    fields: list[StoredField] = []
    topic_ids: list[UUID] = []
    lets_choose_topics: bool = False
    segment_id: UUID | None = None
    texts: StoredTexts = StoredTexts()
    theme: StoredTheme = StoredTheme()
    redirect_url: str | None = None
    confirmed_url: str | None = None


_decoder: Final = msgspec.json.Decoder(FormSettings)


def read(stored: str) -> FormSettings:
    """Return settings as they are stored."""
    return _decoder.decode(stored)


def written(settings: FormSettings) -> str:
    """Return settings as they are stored."""
    return msgspec.json.encode(settings).decode()


def web_address(text: str, path: str) -> str | None:
    """Return an address of the web to which browsers are sent on; None where it is empty.

    422 for another one: it has no user, no control character and no other scheme."""
    text = text.strip()
    if not text:
        return None
    try:
        parts = urlsplit(text)
        is_right = len(text) <= LONGEST_URL and _URL.fullmatch(text) and parts.hostname and not parts.username
        assert parts.port is None or parts.port
    except (ValueError, AssertionError):
        is_right = False
    if not is_right:
        raise InvalidField(path, "It must be an http or https address.")
    return text


def origin_of(url: str | None) -> str:
    """Return the origin of an address of the web; "" of none."""
    return "" if url is None else "/".join(re.split(r"[/?#]", url, maxsplit=3)[:3])


def theme_of(given: Mapping[str, str]) -> StoredTheme:
    """Return a look that can be read; 422 names the field that is wrong."""
    settings, faults = page_settings.checked({"title": "", "text": "", "footer": "", **given})
    for name, fault in faults.items():
        raise InvalidField(f"theme.{name}", f"It is wrong: {fault.value}.")
    return StoredTheme(settings.logo_url, settings.page_color, settings.text_color, settings.button_color)


def look_of(theme: StoredTheme, team: UnsubscribePageSettings) -> UnsubscribePageSettings:
    """Return the look of a form: its own where it has one, else that of the team."""
    has_colors = any((theme.page_color, theme.text_color, theme.button_color))
    return UnsubscribePageSettings(
        logo_url=theme.logo_url or team.logo_url,
        page_color=theme.page_color if has_colors else team.page_color,
        text_color=theme.text_color if has_colors else team.text_color,
        button_color=theme.button_color if has_colors else team.button_color,
    )
