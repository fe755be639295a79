"""What pages for people say, in English: one catalogue of key and text, which can be translated as a whole.

The catalogues of the parts are merged here; a key begins with the name of its page. Templates and handlers
ask `t("login.title")`; words in braces are filled in: `t("login.wait", seconds=30)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from pillarbox.dashboard.texts import account, consent, people, teams


def _merged(*catalogues: Mapping[str, str]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for catalogue in catalogues:
        if twice := found.keys() & catalogue.keys():
            raise ValueError(f"texts with the same key: {sorted(twice)}")
        found |= catalogue
    return MappingProxyType(found)


TEXTS: Final = _merged(people.TEXTS, account.TEXTS, teams.TEXTS, consent.TEXTS)
"""Every text."""


def t(key: str, **values: object) -> str:
    """The text of a key, with values in place of the words in braces."""
    text = TEXTS[key]
    return text.format(**values) if values else text
