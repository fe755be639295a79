"""The texts of all pages: one catalogue of key and text per language.

The catalogues of the parts are merged here; a key begins with the name of its page. Templates and handlers
ask `t("login.title")`; words in braces are filled in: `t("login.wait", seconds=30)`. Each language has every
key. The language and the time zone of a page are those of the request that is at work. Begin with `frame.py`,
whose texts many screens use.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

from pillarbox.dashboard.texts import (
    account,
    audience,
    automations,
    consent,
    docs,
    domains,
    editor,
    emails,
    events,
    examination,
    frame,
    german,
    inboxes,
    installation,
    logs,
    metrics,
    overview,
    people,
    reasons,
    received,
    recipients,
    sentences,
    suppressions,
    teams,
    unsubscribe_page,
    webhooks,
)
from pillarbox.dashboard.texts.languages import ENGLISH, GERMAN, NAMES, language, use_language
from pillarbox.dashboard.texts.number_format import number

__all__ = [
    "LANGUAGES",
    "NAMES",
    "TEXTS",
    "has_text",
    "language",
    "reason_text",
    "sentence_pattern",
    "t",
    "translated",
    "use_language",
]


def _merged(*catalogues: Mapping[str, str]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for catalogue in catalogues:
        if twice := found.keys() & catalogue.keys():
            raise ValueError(f"texts with the same key: {sorted(twice)}")
        found |= catalogue
    return MappingProxyType(found)


TEXTS: Final = _merged(
    people.TEXTS,
    account.TEXTS,
    audience.TEXTS,
    teams.TEXTS,
    unsubscribe_page.TEXTS,
    consent.TEXTS,
    inboxes.TEXTS,
    installation.TEXTS,
    frame.TEXTS,
    overview.TEXTS,
    emails.TEXTS,
    received.TEXTS,
    webhooks.TEXTS,
    logs.TEXTS,
    domains.TEXTS,
    editor.TEXTS,
    suppressions.TEXTS,
    metrics.TEXTS,
    docs.TEXTS,
    reasons.TEXTS,
    recipients.TEXTS,
    sentences.TEXTS,
    automations.TEXTS,
    events.TEXTS,
    examination.TEXTS,
)
"""Every text in English."""

GERMAN_TEXTS: Final = _merged(*german.CATALOGUES)
"""Every text in German."""

LANGUAGES: Final = {ENGLISH: TEXTS, GERMAN: GERMAN_TEXTS}
"""Every text in every language, by the language's code (BCP 47)."""

LONGEST_SENTENCE: Final = 2000
_PLACE: Final = re.compile(r"\{([a-z_]+)\}")

SINGULAR: Final = ".singular"
"""The end of the key of a text that stands for a `count` of one."""


def t(key: str, /, **values: object) -> str:
    """Return the text of a key in the page's language, with values in place of the words in braces.

    Where there is a text `<key>.singular`, it is taken for a `count` of one.
    """
    texts = LANGUAGES[language()]
    count = values.get("count")
    if isinstance(count, int):
        values["count"] = number(count)
        if count == 1 and key + SINGULAR in TEXTS:
            key += SINGULAR
    text = texts.get(key) or TEXTS[key]
    return text.format(**values) if values else text


def reason_text(reason: str | None) -> str | None:
    """Return the reason of a failure or a delay as a sentence; one that is no word of ours is a sentence."""
    if reason is None:
        return None
    key = f"reason.{reason}"
    return t(key) if key in TEXTS else reason


def translated(sentence: str) -> str:
    """Return a sentence of the API or of a command in the page's language; as it is where it is not known."""
    if language() == ENGLISH or len(sentence) > LONGEST_SENTENCE:
        return sentence
    texts = LANGUAGES[language()]
    for key, pattern in _sentence_patterns().items():
        if (found := pattern.fullmatch(sentence)) is not None:
            return texts[key].format(**found.groupdict())
    return sentence


@cache
def _sentence_patterns() -> Mapping[str, re.Pattern[str]]:
    """Return what fits each sentence, with a group for each word in braces; the longest ones first."""
    longest_first = sorted({**reasons.TEXTS, **sentences.TEXTS}.items(), key=lambda entry: -len(entry[1]))
    return {key: re.compile(sentence_pattern(text)) for key, text in longest_first}


def sentence_pattern(text: str) -> str:
    """Return a pattern of what a text becomes with values, with a group for each word in braces."""
    seen: set[str] = set()
    pieces = []
    for index, piece in enumerate(_PLACE.split(text)):
        if index % 2 == 0:
            pieces.append(re.escape(piece))
        elif piece in seen:
            pieces.append(f"(?P={piece})")
        else:
            seen.add(piece)
            pieces.append(f"(?P<{piece}>.+?)")
    return "".join(pieces)


def has_text(key: str) -> bool:
    """Return whether there is a text with this key."""
    return key in TEXTS
