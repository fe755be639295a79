"""Which messages a search looks for, beside the filters of their threads (inboxes.md 5.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pillarbox.inboxes.search.folding import folded
from pillarbox.inboxes.search.terms import SearchField
from pillarbox.inboxes.search.words import MOST_WORDS, OperatorRefused, SearchWords, TooManyWords, words
from pillarbox.inboxes.threads.list_filter import searched_text
from pillarbox.kernel.wire.instants import parse_instant
from pillarbox.kernel.wire.problems import Invalid, InvalidParameter
from pillarbox.kernel.wire.query import Query

MOST_VALUES: Final = 20
LONGEST_VALUE: Final = 256

PEOPLE: Final = {
    "from": SearchField.SENDER,
    "to": SearchField.TO,
    "cc": SearchField.CC,
    "bcc": SearchField.BCC,
}

MESSAGE_FILTERS: Final[dict[str, Any]] = {
    "query": str,
    "from": str,
    "to": str,
    "cc": str,
    "bcc": str,
    "has_attachment": bool,
    "start_date": str,
    "end_date": str,
}
"""The query parameters."""

NO_WORDS: Final = SearchWords()

DATE: Final = len("2026-10-03")


@dataclass(frozen=True, slots=True)
class MessageFilter:
    """All of it must hold for one message. Of `people` one value of each part must be somewhere in it, in any
    case of letters; the values are folded. `until` is behind the last instant."""

    words: SearchWords = NO_WORDS
    people: dict[SearchField, tuple[str, ...]] = field(default_factory=dict)
    has_attachment: bool | None = None
    since: datetime | None = None
    until: datetime | None = None

    def __bool__(self) -> bool:
        return self != NONE

    @classmethod
    def of(cls, query: Query) -> MessageFilter:
        """Return the filter that a request names."""
        since, until = _since(query), _until(query)
        if since is not None and until is not None and until <= since:
            raise Invalid("The `end_date` must not be before the `start_date`.")
        return cls(
            _words(query),
            {part: found for name, part in PEOPLE.items() if (found := _values(name, query.items(name)))},
            query.boolean("has_attachment"),
            since,
            until,
        )


NONE: Final = MessageFilter()


def _words(query: Query) -> SearchWords:
    text = searched_text(query)
    try:
        return NO_WORDS if text is None else words(text)
    except TooManyWords:
        raise InvalidParameter("query", f"Use at most {MOST_WORDS} words.") from None
    except OperatorRefused as refused:
        raise InvalidParameter("query", _without(refused.args[0])) from None


def _without(operator: str) -> str:
    name = operator.removesuffix(":")
    instead = f"the parameter `{name}`" if name in PEOPLE else "the parameters of this endpoint"
    return f"`{operator}` is no operator here. Use {instead}, or quotation marks to look for the text."


def _values(name: str, values: Sequence[str]) -> tuple[str, ...]:
    if len(values) > MOST_VALUES:
        raise InvalidParameter(name, f"Use at most {MOST_VALUES} values.")
    if any(len(value) > LONGEST_VALUE for value in values):
        raise InvalidParameter(name, f"Use at most {LONGEST_VALUE} characters for each value.")
    return tuple(dict.fromkeys(map(folded, values)))


def _since(query: Query) -> datetime | None:
    text = query.text("start_date")
    return None if text is None else _shown(_instant("start_date", text))


def _until(query: Query) -> datetime | None:
    """Return the instant behind the one that is named, as answers show it, or behind the day."""
    text = query.text("end_date")
    if text is None:
        return None
    end = _shown(_instant("end_date", text))
    step = timedelta(days=1) if len(text) == DATE else timedelta(milliseconds=1)
    return end + step if end < datetime.max.replace(tzinfo=UTC) - step else end


def _shown(instant: datetime) -> datetime:
    """Return the instant cut to milliseconds, as answers are: the `received_at` of a message names
    that message."""
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)


def _instant(name: str, text: str) -> datetime:
    try:
        return parse_instant(text, date_only=True)
    except ValueError as wrong:
        raise InvalidParameter(name, str(wrong)) from None
