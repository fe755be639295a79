"""Numbers, days and times as each language writes them."""

from __future__ import annotations

from typing import Final, NamedTuple

from pillarbox.dashboard.texts.languages import ENGLISH, GERMAN, language


class LanguageFormat(NamedTuple):
    """The separators of numbers, and the patterns of days and times (`strftime`)."""

    thousands: str
    decimal: str
    day: str
    time: str
    million: str
    thousand: str


FORMATS: Final = {
    ENGLISH: LanguageFormat(
        thousands=",", decimal=".", day="%Y-%m-%d", time="%Y-%m-%d %H:%M", million="M", thousand="k"
    ),
    GERMAN: LanguageFormat(
        thousands=".", decimal=",", day="%d.%m.%Y", time="%d.%m.%Y, %H:%M", million="Mio.", thousand="Tsd."
    ),
}


def current() -> LanguageFormat:
    """Return the format of the page's language."""
    return FORMATS[language()]


def number(value: float, digits: int | None = None, *, is_signed: bool = False) -> str:
    """Return a number with the separators of the page's language. `digits` follow the decimal separator:
    without it none for whole numbers and one for others."""
    if digits is None:
        digits = 0 if isinstance(value, int) else 1
    text = f"{value:+,.{digits}f}" if is_signed else f"{value:,.{digits}f}"
    own = current()
    return text.translate(str.maketrans(",.", own.thousands + own.decimal))
