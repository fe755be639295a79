"""A team's choices for its page to unsubscribe: title, texts, logo, colours (docs/decisions/0171)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from enum import Enum
from typing import Final
from urllib.parse import urlsplit

import msgspec

from pillarbox.documents.colors import color_of, contrast
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.people.audit import Act, Actor, record
from pillarbox.unsubscribe import queries

LONGEST_TITLE: Final = 100
LONGEST_TEXT: Final = 500
LONGEST_URL: Final = 500
TEXT_CONTRAST: Final = 4.5
BUTTON_CONTRAST: Final = 3.0
"""The least contrast with the page: of text (WCAG 1.4.3), and of buttons and outlines (WCAG 1.4.11)."""

TEXTS: Final = ("title", "text", "footer")
COLORS: Final = ("page_color", "text_color", "button_color")
_HOST: Final = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]")
_PATH: Final = re.compile(r"/[A-Za-z0-9/._~!$&()*+,=:@%?-]*")


class SettingFault(Enum):
    """A fault of a field."""

    TOO_LONG = "too long"
    NO_LOGO = "no https address of a picture"
    NO_COLOR = "no colour"
    HARD_TO_READ = "too little contrast with the page"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnTexts:
    """The texts of a team for readers of one language; an empty one is as for everybody."""

    title: str = ""
    text: str = ""
    footer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsubscribePageSettings:
    """The choices of a team; an empty field is as it is without a choice."""

    title: str = ""
    text: str = ""
    footer: str = ""
    logo_url: str = ""
    page_color: str = ""
    text_color: str = ""
    button_color: str = ""
    languages: Mapping[str, OwnTexts] = field(default_factory=dict)
    """Texts for readers of a language, by its code."""

    def in_language(self, code: str) -> UnsubscribePageSettings:
        """Return the settings with the texts for readers of a language."""
        own = self.languages.get(code)
        if own is None:
            return self
        given = {name: text for name in TEXTS if (text := getattr(own, name))}
        return replace(self, **given)

    @property
    def logo_origin(self) -> str:
        """The origin that the logo is loaded from; empty without a logo."""
        return "/".join(self.logo_url.split("/", 3)[:3])

    @property
    def has_colors(self) -> bool:
        """Whether the page has colours of its own, which are the same by day and by night."""
        return any((self.page_color, self.text_color, self.button_color))

    @property
    def colors(self) -> tuple[str, str, str]:
        """The colours of page, text and buttons, with the usual one for each that was not chosen."""
        page, text, button = USUAL
        return self.page_color or page, self.text_color or text, self.button_color or button


USUAL: Final = ("#ffffff", "#1f2328", "#0b57b5")
"""The colours of page, text and buttons beside a chosen one."""

DEFAULT: Final = UnsubscribePageSettings()
_decoder: Final = msgspec.json.Decoder(UnsubscribePageSettings)


def checked(
    fields: Mapping[str, str], languages: Collection[str] = ()
) -> tuple[UnsubscribePageSettings, dict[str, SettingFault]]:
    """Return the settings that the fields of a form say, and what is wrong with which field. The texts of a
    language are in fields as `title.de`."""
    faults: dict[str, SettingFault] = {}
    own = {code: OwnTexts(**_texts(fields, f".{code}", faults)) for code in languages}
    given = UnsubscribePageSettings(
        **_texts(fields, "", faults),
        languages={code: texts for code, texts in own.items() if texts != OwnTexts()},
        logo_url=fields["logo_url"].strip(),
        **{name: fields[name].strip().lower() for name in COLORS},
    )
    if given.logo_url:
        logo_url = _logo_url(given.logo_url)
        if logo_url is None:
            faults["logo_url"] = SettingFault.NO_LOGO
        else:
            given = replace(given, logo_url=logo_url)
    return given, faults | _wrong_colors(given)


def _texts(fields: Mapping[str, str], ending: str, faults: dict[str, SettingFault]) -> dict[str, str]:
    """Return the texts in the fields whose names end so; those that are too long are added to `faults`."""
    texts = {name: _lines(fields.get(f"{name}{ending}", "")) for name in TEXTS}
    texts["title"] = " ".join(texts["title"].split())
    for name, text in texts.items():
        if len(text) > (LONGEST_TITLE if name == "title" else LONGEST_TEXT):
            faults[f"{name}{ending}"] = SettingFault.TOO_LONG
    return texts


def without(settings: UnsubscribePageSettings, names: Collection[str]) -> UnsubscribePageSettings:
    """Return the settings with these fields empty; with one colour all are."""
    if any(name in names for name in COLORS):
        names = {*names, *COLORS}
    languages = {
        code: replace(own, **{name: "" for name in TEXTS if f"{name}.{code}" in names})
        for code, own in settings.languages.items()
    }
    return replace(settings, **{name: "" for name in names if "." not in name}, languages=languages)


def _wrong_colors(settings: UnsubscribePageSettings) -> dict[str, SettingFault]:
    faults = {
        name: SettingFault.NO_COLOR
        for name in COLORS
        if getattr(settings, name) and color_of(getattr(settings, name)) is None
    }
    if faults or not settings.has_colors:
        return faults
    page, text, button = settings.colors
    # The field that was filled in is named: a page colour may be what makes the usual text unreadable.
    if contrast(text, page) < TEXT_CONTRAST:
        faults["text_color" if settings.text_color else "page_color"] = SettingFault.HARD_TO_READ
    if contrast(button, page) < BUTTON_CONTRAST:
        faults["button_color" if settings.button_color else "page_color"] = SettingFault.HARD_TO_READ
    return faults


def _lines(text: str) -> str:
    """Return the text in lines without control characters."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join("".join(char for char in line if char.isprintable()).strip() for line in lines).strip()


def _logo_url(text: str) -> str | None:
    """Return the address of a logo as it may stand in a page and its policy; None where it is none."""
    if len(text) > LONGEST_URL:
        return None
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return None
    host, path = (parts.hostname or "").lower(), text.partition("//")[2].partition("/")
    is_plain = parts.scheme == "https" and "@" not in parts.netloc and not parts.fragment
    if not (is_plain and len(host) <= 253 and _HOST.fullmatch(host) and _PATH.fullmatch(f"/{path[2]}")):
        return None
    return f"https://{host}{f':{port}' if port not in (None, 443) else ''}/{path[2]}"


def read(stored: str | None) -> UnsubscribePageSettings:
    """Return the settings as they are stored; the default where nothing is."""
    return DEFAULT if stored is None else _decoder.decode(stored)


async def settings_of(db: TeamDb) -> UnsubscribePageSettings:
    """Return the settings of the team."""
    return read(await queries.page_settings(db))


async def save(db: TeamDb, settings: UnsubscribePageSettings, actor: Actor, now: datetime) -> None:
    """Store the settings, and who has chosen them."""
    chosen = {name: value for name, value in asdict(settings).items() if value}
    stored = msgspec.json.encode(chosen).decode() if chosen else None
    async with db.transaction() as inner:
        if await queries.set_page_settings(inner, stored):
            await record(
                inner.source,
                now,
                Act.UNSUBSCRIBE_PAGE_CHANGED,
                team_id=inner.team_id,
                actor=actor,
                target=settings.title or None,
                details={"fields": sorted(chosen)},
            )
