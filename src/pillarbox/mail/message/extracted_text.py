"""Extracts the text that the author of a message wrote, without quoted history and signature.

    extracted_text(text, html, subject)      # None where the message has neither

Quoted lines are left out wherever they stand, and what stands between and below them stays, so answers
inside a quotation are kept. A message that only hands on another one has all of its text: that is what its
author wants to be read. The plain text is read where there is one; the HTML where there is none, or where it
marks a quotation that the plain text does not show. Of HTML only what its readers see is text. Time is
linear in the length, and only the first `LONGEST_TEXT` characters are read.
"""

from __future__ import annotations

import re
from typing import Final

from pillarbox.mail.html.plain_text import HostOf
from pillarbox.mail.message.subject_prefixes import begins_with_forward
from pillarbox.mail.quotations import history, marked_html, signatures

LONGEST_TEXT: Final = 262_144
MOST_LINES: Final = 20_000

_LINE_END = re.compile(r"\r\n?|\n|\u2028|\u2029|\x0b|\x0c")
_INVISIBLE = re.compile("[\x00\u200b\u2060\ufeff]")
_POINTS_TO_HTML = re.compile(r"\bhtml\b", re.IGNORECASE)
_LONGEST_POINTER: Final = 600
_EMPTY_LINES = re.compile(r"\n[ \t]*+\n[ \t\n]*\n")


def extracted_text(text: str | None, html: str | None, subject: str | None = None) -> str | None:
    """Return the text that is new in this message, or that it hands on; empty where its author only quotes.

    A subject with the mark of a forward says that it hands on what it quotes.
    """
    is_forward = begins_with_forward(subject)
    if text and text.strip():
        own = _OwnLines(text)
        if not html or not html.strip() or not _says_less(own, text, html):
            return own.written() or own.handed_on(is_forward=is_forward)
        marked = _OwnLines(marked_html.text_of(html)).written() or own.written()
        return marked or own.handed_on(is_forward=is_forward) or _handed_on(html, is_forward=is_forward)
    if html and html.strip():
        return text_of_html(html, subject)
    return None if text is None and html is None else ""


def text_of_html(html: str, subject: str | None = None, host_of: HostOf | None = None) -> str:
    """Return what is new in the HTML, or what it hands on, whatever stands in the plain text. With `host_of`
    links have their marks (`plain_text.LINK_BEGIN`)."""
    own = _OwnLines(marked_html.text_of(html, host_of)).written()
    return own or _handed_on(html, is_forward=begins_with_forward(subject), host_of=host_of)


def text_of_plain(text: str, subject: str | None = None) -> str:
    """Return what is new in the plain text, or what it hands on."""
    own = _OwnLines(text)
    return own.written() or own.handed_on(is_forward=begins_with_forward(subject))


def _handed_on(html: str, *, is_forward: bool, host_of: HostOf | None = None) -> str:
    """Return the text of an HTML mail that only hands on another message; else empty."""
    return _OwnLines(marked_html.whole_text_of(html, host_of)).handed_on(is_forward=is_forward)


def _says_less(own: _OwnLines, text: str, html: str) -> bool:
    """Return whether the HTML is to be read although there is plain text.

    It marks a quotation that the text does not show, or the text only says that the message is in HTML.
    """
    if len(text) <= _LONGEST_POINTER and _POINTS_TO_HTML.search(text):
        return True
    return not own.has_history and marked_html.has_marks(html)


class _OwnLines:
    """The lines of a text, cut into stretches of own lines by what is quoted."""

    def __init__(self, text: str) -> None:
        cut = _INVISIBLE.sub("", text[:LONGEST_TEXT]).replace("\xa0", " ")
        self._lines = [
            line if line in ("-- ", "--") else line.rstrip() for line in _LINE_END.split(cut)[:MOST_LINES]
        ]
        self._compared = [history.without_marks(line) for line in self._lines]
        self.has_history = False
        self._history_at: int | None = None
        self._names_forward = False
        self._stretches: list[list[str]] = [[]]
        self._quoted = [_is_quoted(line) for line in self._compared]
        self._take_back_marks()
        self._last_quoted = max((at for at, quoted in enumerate(self._quoted) if quoted), default=-1)
        self._read()

    def written(self) -> str:
        """Return the remaining text, with one empty line between two stretches."""
        kept = []
        for lines in self._stretches:
            said = "\n".join(lines[: signatures.end_of_text(lines)]).strip("\n").rstrip()
            if said.strip():
                kept.append(said)
        return _EMPTY_LINES.sub("\n\n", "\n\n".join(kept))

    def handed_on(self, *, is_forward: bool) -> str:
        """Return the text from the line on behind which another message stands; empty unless it is
        a forward."""
        if self._history_at is None or not (is_forward or self._names_forward):
            return ""
        return _EMPTY_LINES.sub("\n\n", "\n".join(self._lines[self._history_at :]).strip())

    def _read(self) -> None:
        at = 0
        while at < len(self._lines):
            if not self._lines[at]:
                self._stretches[-1].append("")
                at += 1
            elif self._quoted[at]:
                self._end_stretch()
                at += 1
            elif self._history_begins(at):
                self._history_at = at
                self._end_stretch()
                return
            elif taken := self._attribution(at):
                self._end_stretch()
                at += taken
                if not self._has_quoted_after(at):
                    return
            else:
                self._stretches[-1].append(self._lines[at])
                at += 1

    def _take_back_marks(self) -> None:
        """Take the mark from a lone quotation that may be the author's own line."""
        lines, quoted = self._lines, self._quoted
        for at, line in enumerate(lines):
            if not quoted[at] or not history.may_be_own(line):
                continue
            before = next((said for said in reversed(lines[max(0, at - 3) : at]) if said.strip()), "")
            is_alone = not (at and quoted[at - 1]) and not (at + 1 < len(lines) and quoted[at + 1])
            if is_alone and not before.endswith((":", "：")):
                quoted[at] = False
                self._compared[at] = lines[at] = line.removeprefix(">") if line.startswith(">From ") else line

    def _end_stretch(self) -> None:
        self.has_history = True
        if self._stretches[-1]:
            self._stretches.append([])

    def _history_begins(self, index: int) -> bool:
        line = self._compared[index].strip()
        self._names_forward = history.is_forward(line)
        if (
            marked_html.HISTORY in line
            or history.is_separator(line)
            or history.field_lines(self._compared, index)
        ):
            return True
        if history.is_rule(line):
            following = self._next_line(index + 1)
            return following is not None and (
                marked_html.HISTORY in self._lines[following]
                or history.field_lines(self._compared, following)
            )
        return False

    def _attribution(self, index: int) -> int:
        """Return how many lines are an attribution; 0 where none begins here."""
        found = history.attribution(self._compared, index)
        if found is None:
            return 0
        if found.is_sure or self._is_quoted(self._next_line(index + found.lines)):
            return found.lines
        return 0

    def _next_line(self, position: int) -> int | None:
        """Return the next line that is not empty, if it is near."""
        for index in range(position, min(position + 4, len(self._lines))):
            if self._lines[index].strip():
                return index
        return None

    def _is_quoted(self, index: int | None) -> bool:
        return index is not None and self._quoted[index]

    def _has_quoted_after(self, index: int) -> bool:
        """Return whether marked lines follow: then what is not marked is the author's own."""
        return self._last_quoted >= index


def _is_quoted(line: str) -> bool:
    return marked_html.QUOTED in line or history.is_quoted(line)
