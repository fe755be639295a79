"""Reads what is submitted at a link: a form of its page, or the one click of a mail program (topics.md 4)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple
from urllib.parse import parse_qsl
from uuid import UUID

from pillarbox.kernel.wire.uuids import well_formed

MOST_FIELDS = 5000
ONE_CLICK = ("list-unsubscribe", "one-click")

_BOUNDARY = re.compile(r'boundary="?([^";]{1,200})"?', re.IGNORECASE)
_NAME = re.compile(rb'\bname="?([^";\r\n]{1,200})"?', re.IGNORECASE)

Fields = Sequence[tuple[str, str]]


class UnsubscribeAction(Enum):
    """The kind of change that a submission asks for."""

    ONE_CLICK = "one_click"
    CONFIRM = "confirm"
    PREFERENCES = "preferences"
    ALL = "all"
    RESUBSCRIBE = "resubscribe"


class Submission(NamedTuple):
    """An action, with the topics that are checked and those that were shown."""

    action: UnsubscribeAction
    topics: tuple[UUID, ...] = ()
    shown: tuple[UUID, ...] = ()


def submission(body: bytes, content_type: str) -> Submission | None:
    """Return the request of a body; None where it asks for nothing that there is."""
    fields = _multipart(body, content_type) if _is_multipart(content_type) else _urlencoded(body)
    if any((name.strip().lower(), value.strip().lower()) == ONE_CLICK for name, value in fields):
        return Submission(UnsubscribeAction.ONE_CLICK)
    by_name = dict(fields)
    if by_name.get("confirm") == "1":
        return Submission(UnsubscribeAction.CONFIRM)
    topics = _ids(value for name, value in fields if name == "topic")
    shown = _ids(value for name, value in fields if name == "shown")
    match by_name.get("action"):
        case "preferences":
            return Submission(UnsubscribeAction.PREFERENCES, topics, shown)
        case "all":
            return Submission(UnsubscribeAction.ALL)
        case "resubscribe":
            return Submission(UnsubscribeAction.RESUBSCRIBE, topics)
    return None


def _ids(values: Iterable[str]) -> tuple[UUID, ...]:
    """Return the ids among these values, each once."""
    return tuple(dict.fromkeys(UUID(value) for value in values if well_formed(value)))


def _urlencoded(body: bytes) -> Fields:
    try:
        return parse_qsl(
            body.decode("latin-1"), keep_blank_values=True, errors="replace", max_num_fields=MOST_FIELDS
        )
    except ValueError:
        return ()


def _is_multipart(content_type: str) -> bool:
    return content_type.lstrip().lower().startswith("multipart/form-data")


def _multipart(body: bytes, content_type: str) -> Fields:
    """Return the fields of a multipart form; files have no place in it."""
    boundary = _BOUNDARY.search(content_type)
    if boundary is None:
        return ()
    mark = b"--" + boundary[1].strip().encode("latin-1", "replace")
    found = []
    for part in body.split(mark, MOST_FIELDS + 1)[1 : MOST_FIELDS + 1]:
        head, _, value = part.partition(b"\r\n\r\n")
        name = _NAME.search(head)
        if name is not None:
            text = value.removesuffix(b"\r\n").decode("utf-8", "replace")
            found.append((name[1].decode("utf-8", "replace"), text))
    return found
