"""Bounces written for people: which recipients a free text speaks of, and what it says about each.

Mail servers have written these texts for forty years and none of them reads like another. What nearly
all have in common: a line that begins with the address (or ends a sentence with it), and behind it what the
remote server said. They are given without the original mail (`dsn_own_words`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

LONGEST_READ: Final = 64 * 1024
MOST_RECIPIENTS: Final = 200
MOST_WORDS: Final = 4096
"""Characters about one recipient that are kept; a reply keeps half of them."""

_WORD = r"[^\s<>()\[\]\",;:'|/=]"
_ADDRESS = rf"{_WORD}{{1,64}}@[^\s<>()\[\]\",;:'|/=]{{1,255}}"
ADDRESS: Final = re.compile(_ADDRESS)
_AT_START = re.compile(
    rf"^[ \t]*(?:[*>\-]{{1,3}}[ \t]*)?(?:[\"'<]{{0,2}})({_ADDRESS})[\"'>]{{0,2}}"
    rf"(?:[ \t]*<(?:mailto:)?{_ADDRESS}>)?[ \t]*(?=$|[:;,\[(<.]|[ \t])",
    re.MULTILINE,
)
_IN_SENTENCE = re.compile(
    rf"(?:rcpt|deliver(?:y|ed|ing)?|undeliverable|sent|reach(?:ed)?|recipients?|address(?:es)?)[ \t]+"
    rf"(?:your |the |this )?"
    rf"(?:mail |message |email )?(?:to|for|is|was)?[ \t]*:?[ \t]*<?({_ADDRESS})>?",
    re.IGNORECASE,
)
_SENT_BY = re.compile(r"(?:message|mail) (?:was )?(?:sent by|from|that)\s*:?\s*<?\s*\Z", re.IGNORECASE)
_REPLY = re.compile(
    r"(?:(?<![0-9.:\[(/@-])|(?<= :))([45][0-9][0-9])[ \t]*[-:]?[ \t]*(?:#?([45]\.[0-9]{1,3}\.[0-9]{1,3})\b)?"
    r"(?=[ \t\n:;,<'\"\-.\])]|$)",
)
_STATUS = re.compile(r"(?<![0-9.])([45]\.[0-9]{1,3}\.[0-9]{1,3})(?![0-9.])")
_REMOTE_SAID = re.compile(r"^<<<[ \t]+([45][0-9][0-9].*)$", re.MULTILINE)
_REASONS_FIRST = re.compile(
    r"^[ \t]*+(?:-{2,}+[ \t]*+)?failure reasons?[ \t]*+(?::|-{2,}+)?[ \t]*+$", re.IGNORECASE | re.MULTILINE
)
_LOTUS_REASON = re.compile(
    r"not listed in (?:the )?(?:public name|domino)|name (?:&|and) address book|no matches found in domino|"
    r"domino.?(?:directory|verzeichnis|ディレクトリ)|(?:annuaire|directorio(?: de)?|elenco) domino|"
    r"recipient user name .{1,200} not unique|no route found to domain|mail file is full|disk quota exceeded",
    re.IGNORECASE,
)
_PARAGRAPH_ENDS = re.compile(r"[ \t]*(?:\n[ \t]*(?:\n|\Z)|\Z)")
_BLANK_LINE = re.compile(r"\n[ \t]*\n")


_JSON = json.JSONDecoder(strict=False)


class TextVerdict(NamedTuple):
    """The verdict of a text about one recipient; `recipient` is None where it names nobody."""

    recipient: str | None
    code: int | None
    status: str | None
    text: str


def text_verdicts(text: str, known: Sequence[str] = ()) -> list[TextVerdict]:
    """Return the text's verdict about each recipient; `known` are those that a header names.

    At least one entry comes back, for nobody in particular if need be.
    """
    text = text[:LONGEST_READ]
    places = _places(text)
    if not places:
        named = _named(text) or list(known[:MOST_RECIPIENTS])
        return [_said(recipient, text) for recipient in named] or [_said(None, text)]
    found: dict[str, TextVerdict] = {}
    for recipient, block in _blocks(text, places):
        spoken = _said(recipient, block)
        kept = found.get(recipient.lower())
        if kept is None or (kept.code is None and kept.status is None):
            found[recipient.lower()] = spoken
    return list(found.values())


def _blocks(text: str, places: Sequence[tuple[str, int, int]]) -> Iterator[tuple[str, str]]:
    """Yield each recipient with the words about them: behind their address, but with Lotus Notes
    before it."""
    begin = _reasons_begin(text, places[0])
    if begin is not None:
        for recipient, start, after in places:
            yield recipient, text[begin:start]
            begin = after
        return
    ends = [start for _, start, _ in places[1:]] + [len(text)]
    for (recipient, start, after), end in zip(places, ends, strict=True):
        yield recipient, text[after:end] if text[after:end].strip() else text[start:]


def _reasons_begin(text: str, place: tuple[str, int, int]) -> int | None:
    """Return where the reasons begin that stand before their addresses, the first of which is at this place:
    behind their heading, or without one at the lines before an address alone, where Lotus Notes says why."""
    _, start, after = place
    heading = _REASONS_FIRST.search(text, 0, start)
    if heading is not None:
        return heading.end()
    before = text[max(0, start - MOST_WORDS) : start].rstrip()
    reason = _BLANK_LINE.split(before)[-1]
    if not _LOTUS_REASON.search(reason) or not _PARAGRAPH_ENDS.match(text, after):
        return None
    return start - len(text[max(0, start - MOST_WORDS) : start]) + len(before) - len(reason)


def said_in_json(text: str) -> list[TextVerdict]:
    """Return the recipients of a bounce that a sending platform reports as a JSON object; empty for
    all else."""
    if not text.lstrip().startswith("{") or '"bouncedRecipients"' not in text:
        return []
    try:
        notice, _ = _JSON.raw_decode(text.lstrip())
        recipients = notice["bounce"]["bouncedRecipients"]
        return [
            TextVerdict(
                str(found["emailAddress"]), None, found.get("status"), str(found.get("diagnosticCode", ""))
            )
            for found in recipients[:MOST_RECIPIENTS]
        ]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return []


def _places(text: str) -> list[tuple[str, int, int]]:
    """Return each recipient that begins a line, with where the line begins and where the address ends."""
    found: list[tuple[str, int, int]] = []
    for match in _AT_START.finditer(text):
        recipient = match[1].rstrip(".")
        is_repeated = bool(found) and found[-1][0].lower() == recipient.lower()
        if not is_repeated and not _SENT_BY.search(text, max(0, match.start() - 60), match.start()):
            found.append((recipient, match.start(), match.end()))
        if len(found) == MOST_RECIPIENTS:
            break
    return found


def _named(text: str) -> list[str]:
    """Return the recipients that sentences name; the whole text is about each of them."""
    named = [match[1].rstrip(".") for match in _IN_SENTENCE.finditer(text)]
    return list({name.lower(): name for name in named}.values())[:MOST_RECIPIENTS]


def _said(recipient: str | None, block: str) -> TextVerdict:
    """Return the reply of a server in a block of text, else its status code, else its words alone."""
    remote = _REMOTE_SAID.search(block)
    words = remote[1] if remote else block
    reply = _REPLY.search(words)
    if reply is None:
        status = _STATUS.search(words)
        return TextVerdict(recipient, None, status[1] if status else None, _kept(words))
    # What follows a blank line behind the reply is the reporter's, not the server's; so is a status
    # before it.
    spoken = _kept(_BLANK_LINE.split(words[reply.start() :], 1)[0])
    status = _STATUS.search(spoken)
    return TextVerdict(recipient, int(reply[1]), reply[2] or (status[1] if status else None), spoken)


def _kept(words: str) -> str:
    return " ".join(words.split())[:MOST_WORDS]
