"""Codes by which somebody confirms who they are, and how long they are valid. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Final, NamedTuple

LONGEST_READ: Final = 6000
LONGEST_SUBJECT: Final = 998

_ABOUT: Final = re.compile(
    r"(?:verif\w{0,12}|security|confirm\w{0,12}|one[- ]time|login|log[- ]in|sign[- ]?in|access"
    r"|authenticat\w{0,12}|2fa|otp)"
    r"[\w ,'-]{0,40}\b(?:code|pass(?:word|code)|pin)\b|\bOTP\b|\b(?:your|the|this|enter) code\b|\bcode is\b"
    r"|(?:best(?:ä|ae)tigungs|verifizierungs|sicherheits|einmal|anmelde|zugangs)\w{0,6}(?:code|kennwort|passwort|pin)\b"
    r"|\bcode de (?:v(?:é|e)rification|s(?:é|e)curit(?:é|e)|confirmation|connexion)"
    r"|\bc(?:ó|o)digo de (?:verificaci(?:ó|o)n|seguridad|confirmaci(?:ó|o)n|acceso)"
    r"|\bcodice di (?:verifica|sicurezza|conferma|accesso)|\bverificatiecode\b"
    r"|код подтверждения|验证码|認証コード",
    re.IGNORECASE,
)
_HINTS: Final = (
    "code",
    "pin",
    "otp",
    "pass",
    "kennwort",
    "c\u00f3dig",
    "codig",
    "codic",
    "\u043a\u043e\u0434",
    "\u9a8c",
    "\u8a8d",
)
"""One of these is in each of the words above."""
_CODE: Final = re.compile(
    r"(?<![\w.,:/#€$£+@-])(?:G-)?(\d{3}[ -]\d{3}|\d{4,8}|(?=[A-Z0-9-]*\d)(?=[A-Z0-9-]*[A-Z])[A-Z0-9]{4,8}"
    r"(?:-[A-Z0-9]{4})?)(?![\w@€$£%/-]|[.,]\d)"
)
_VALID: Final = re.compile(
    r"(\d{1,3})\s*(seconds?|minutes?|mins?|hours?|sekunden|minuten?|stunden?|secondes|heures?|minutos?|horas?"
    r"|minuti|or[ae]|uur|минут\w*|分钟|分)(?!\w)",
    re.IGNORECASE,
)
_YEAR: Final = re.compile(r"(?:19|20)\d\d")
NEAR: Final = 300
"""Characters between the words for a code and the code."""


class VerificationCode(NamedTuple):
    """The code without blanks; `valid_for` in seconds, None where nothing is said."""

    code: str
    valid_for: int | None


def verification_code(subject: str, text: str) -> VerificationCode | None:
    """Return the code of a message, the one that stands nearest behind the words for it."""
    whole = f"{subject[:LONGEST_SUBJECT]}\n{text[:LONGEST_READ]}"
    lowered = whole.lower()
    if not any(hint in lowered for hint in _HINTS):
        return None
    codes = [_NearbyCode(found.start(1), found.end(1), found[1]) for found in _CODE.finditer(whole)]
    if not codes:
        return None
    near = [one for words in _ABOUT.finditer(whole) for one in _nearest(codes, *words.span())]
    if not near:
        return None
    return VerificationCode(re.sub(r"[ -]", "", min(near, key=itemgetter(0))[1]), _validity(whole))


class _NearbyCode(NamedTuple):
    """A text that may be a code, and where it stands."""

    start: int
    end: int
    code: str


def _nearest(codes: Sequence[_NearbyCode], start: int, end: int) -> Iterator[tuple[int, str]]:
    """Yield the nearest code before the words for one, and the nearest behind them, each with its distance:
    one that stands before them counts as twice as far."""
    behind = bisect_left(codes, (end,))
    for one in reversed(codes[:behind]):
        gap = 2 * (start - one.end)
        if gap > NEAR:
            break
        if gap >= 0 and _may_be_code(one, gap):
            yield gap, one.code
            break
    for one in codes[behind:]:
        gap = one.start - end
        if gap > NEAR:
            break
        if _may_be_code(one, gap):
            yield gap, one.code
            break


def _may_be_code(candidate: _NearbyCode, gap: int) -> bool:
    """Return whether it is no year, which seldom stands right beside the words."""
    return gap <= 5 or _YEAR.fullmatch(candidate.code) is None


def _validity(text: str) -> int | None:
    found = _VALID.search(text)
    if found is None:
        return None
    unit = found[2].lower()
    if unit.startswith(("h", "stund", "or", "uur")):
        return int(found[1]) * 3600
    return int(found[1]) * (1 if unit.startswith(("sec", "sek")) else 60)
