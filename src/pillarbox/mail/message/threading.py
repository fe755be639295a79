"""Which messages belong together: by the ids that they name, or by their subject (inboxes.md 9.4 to 9.6).

Pure. What it costs grows with the length of the fields, and the ids of a message that count are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from typing import Final, NamedTuple

from pillarbox.mail.message.subject_prefixes import PREFIX, folded

MOST_IDS: Final = 100
"""Ids of earlier messages that a message is compared by. The nearest ones come first."""

_LIST_TAG: Final = re.compile(r"\[[^\[\]]{1,100}\] ?")


class ComparedSubject(NamedTuple):
    """A subject as it is compared; `is_answer` says that it began with the mark of a reply or a forward."""

    text: str
    is_answer: bool


def bare_id(message_id: str) -> str:
    """Return a message id as it is compared: without whitespace and brackets around it."""
    return message_id.strip().removeprefix("<").removesuffix(">").strip()


def id_key(message_id: str) -> int:
    """Return a number by which equal ids are looked up, in the range of a `bigint`. Others may have
    it too."""
    return _key(bare_id(message_id))


def earlier_ids(in_reply_to: Sequence[str], references: Sequence[str]) -> tuple[str, ...]:
    """Return the ids of earlier messages in the order in which they decide: In-Reply-To, then References from
    the last one back; each once."""
    nearest = [*in_reply_to[:MOST_IDS], *reversed(references[-MOST_IDS:])]
    return tuple(dict.fromkeys(filter(None, map(bare_id, nearest))))[:MOST_IDS]


def compared_subject(subject: str | None) -> ComparedSubject:
    """Return the subject without marks of replies, forwards and lists, and without regard to case
    and blanks."""
    text = folded(subject or "")
    at, is_answer = 0, False
    while True:
        prefix = PREFIX.match(text, at)
        found = prefix or _LIST_TAG.match(text, at)
        if found is None:
            return ComparedSubject(text[at:].strip(), is_answer)
        is_answer = is_answer or prefix is not None
        at = found.end()


def subject_key(text: str) -> int | None:
    """Return a number by which equal compared subjects are looked up; an empty one equals none."""
    return _key(text) if text else None


def _key(text: str) -> int:
    return int.from_bytes(sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big", signed=True)
