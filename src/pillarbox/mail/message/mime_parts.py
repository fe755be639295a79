"""The tree of parts of a message as offsets into its bytes (RFC 2045, RFC 2046): nothing is copied.

Boundaries that are missing, wrong or never closed, parts without headers, preambles and epilogues are
read as far as they make sense; what cannot be divided stays one leaf. The work is bounded: 50 levels,
1,000 parts, 16 passes over the message at most; a message that hits a bound is marked incomplete and the
rest of it stays inside the part where it was met (INB-03). Messages inside the message stay closed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pillarbox.mail.message import attachments, header_block, header_text, mime_parameters, transfer_decoding
from pillarbox.mail.message.mime_parameters import ParameterizedValue

DEEPEST = 50
MOST_PARTS = 1000
MOST_PASSES = 16
MOST_FALSE_BOUNDARIES = 10_000
LONGEST_BOUNDARY = 2048
SNIFFED = 65_536

_REST_OF_BOUNDARY = re.compile(rb"(--)?[ \t]*(?:\r?\n|\r?\Z)")
_SNIFF = re.compile(rb"(?<![^\n])--([^\s][^\r\n]{0,199}?)[ \t]*\r?\nContent-", re.IGNORECASE)
_CONTENT_ID = re.compile(r"\s*<([^<>]*)>")


@dataclass(frozen=True, slots=True)
class ParsedPart:
    """A part: what its header says, and where it stands in the raw message.

    The header runs from `start`, the still encoded content from `content_start` to `end`. `disposition`
    is `inline`, `attachment` or None; what is neither counts as attachment (RFC 2183, 2.8).
    """

    content_type: str
    parameters: Mapping[str, str]
    encoding: str
    disposition: str | None
    filename: str | None
    content_id: str | None
    start: int
    content_start: int
    end: int
    children: tuple[ParsedPart, ...] = ()

    @property
    def charset(self) -> str | None:
        return self.parameters.get("charset")

    def leaves(self) -> Iterator[ParsedPart]:
        """Yield the parts without parts of their own, in the order of the message."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()


@dataclass(slots=True)
class MimeBudget:
    """The remaining budget for a message, and whether it sufficed."""

    octets: int
    parts: int = MOST_PARTS
    false_boundaries: int = MOST_FALSE_BOUNDARIES
    complete: bool = field(default=True)


def tree(raw: bytes, head: Mapping[str, bytes], content_start: int) -> tuple[ParsedPart, bool]:
    """Return the root part of a message whose header is `head`; and whether all of it was divided."""
    bounds = MimeBudget(octets=MOST_PASSES * len(raw))
    root = _Splitter(raw, bounds).part(head, 0, content_start, len(raw), "text/plain", 0)
    return root, bounds.complete


def content(raw: bytes, part: ParsedPart) -> bytes:
    """Return the decoded content of a leaf."""
    return transfer_decoding.decoded(raw, part.content_start, part.end, part.encoding)


class _Splitter:
    def __init__(self, raw: bytes, bounds: MimeBudget) -> None:
        self._raw = raw
        self._bounds = bounds

    def part(
        self, head: Mapping[str, bytes], start: int, content_start: int, end: int, default: str, depth: int
    ) -> ParsedPart:
        """Return the part with this header, divided as far as its type asks for it."""
        declared = head.get("content-type")
        kind = mime_parameters.content_type(declared) if declared else ParameterizedValue(default, {})
        children: tuple[ParsedPart, ...] = ()
        if kind.value.startswith("multipart/"):
            children = self._children(kind, content_start, end, depth)
        disposition, filename = _disposition(head.get("content-disposition"), kind)
        return ParsedPart(
            content_type=kind.value,
            parameters=kind.parameters,
            encoding=transfer_decoding.encoding_named(head.get("content-transfer-encoding")),
            disposition=disposition,
            filename=filename,
            content_id=_content_id(head.get("content-id")),
            start=start,
            content_start=content_start,
            end=end,
            children=children,
        )

    def _children(self, kind: ParameterizedValue, start: int, end: int, depth: int) -> tuple[ParsedPart, ...]:
        self._bounds.octets -= end - start
        if depth == DEEPEST or self._bounds.octets < 0:
            self._bounds.complete = False
            return ()
        boundary = (kind.get("boundary") or "").rstrip(" ").encode("utf-8", "replace")[:LONGEST_BOUNDARY]
        spans = self._spans(boundary, start, end) if boundary else []
        if not spans and (sniffed := _SNIFF.search(self._raw, start, min(end, start + SNIFFED))):
            spans = self._spans(sniffed[1], start, end)
        default = "message/rfc822" if kind.value == "multipart/digest" else "text/plain"
        return tuple([self._child(first, last, default, depth + 1) for first, last in spans])

    def _child(self, start: int, end: int, default: str, depth: int) -> ParsedPart:
        block = header_block.split(self._raw, start, end)
        head = header_block.first_of_each(block.fields)
        return self.part(head, start, block.body_start, end, default, depth)

    def _spans(self, boundary: bytes, start: int, end: int) -> list[tuple[int, int]]:
        """Return where the parts stand between the lines of this boundary; the last may lack its end."""
        spans: list[tuple[int, int]] = []
        opened: int | None = None
        for line_start, line_end, closes in self._delimiters(b"--" + boundary, start, end):
            if self._bounds.parts == 0 and not closes:
                self._bounds.complete = False
                break
            if opened is not None:
                spans.append((opened, max(opened, line_start)))
            if closes:
                return spans
            opened = line_end
            self._bounds.parts -= 1
        if opened is not None and (opened < end or not spans):
            spans.append((opened, end))
        return spans

    def _delimiters(self, delimiter: bytes, start: int, end: int) -> Iterator[tuple[int, int, bool]]:
        """Yield the place of each delimiter line with the line end before it, and whether it closes."""
        raw = self._raw
        at = start
        if raw.startswith(delimiter, start, end):
            found = _REST_OF_BOUNDARY.match(raw, start + len(delimiter), end)
            if found is not None:
                yield start, found.end(), found[1] is not None
                at = max(start, found.end() - 1)
        needle = b"\n" + delimiter
        while (newline := raw.find(needle, at, end)) >= 0:
            at = newline + len(needle)
            found = _REST_OF_BOUNDARY.match(raw, at, end)
            if found is None:
                self._bounds.false_boundaries -= 1
                if self._bounds.false_boundaries < 0:
                    self._bounds.complete = False
                    return
                continue
            line_start = newline - (newline > start and raw[newline - 1] == 13)
            yield line_start, found.end(), found[1] is not None
            # The line end of this line may be the one before the next.
            at = max(at, found.end() - 1)


def _disposition(raw: bytes | None, kind: ParameterizedValue) -> tuple[str | None, str | None]:
    """Return the disposition, and the cleaned file name from wherever it stands."""
    if not raw and not kind.parameters:
        return None, None
    declared = mime_parameters.parse(raw) if raw else ParameterizedValue("", {})
    disposition = declared.value if declared.value in ("", "inline") else "attachment"
    name = (declared.get("filename") or kind.get("name") or declared.get("name") or "").strip()
    return disposition or None, attachments.clean_filename(name) if name else None


def _content_id(raw: bytes | None) -> str | None:
    if raw is None:
        return None
    text = header_text.clean(header_text.unfolded(raw[:1024]))
    found = _CONTENT_ID.match(text)
    return (found[1] if found else text).strip() or None
