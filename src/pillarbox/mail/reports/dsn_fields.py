"""The machine-readable part of a delivery status notification (RFC 3464, 2): groups of fields.

Read are message/delivery-status parts and text that looks like one, with the deviations of real
servers: fields of several recipients without a blank line between, values with comments, wrong types.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from pillarbox.mail.message import header_text
from pillarbox.mail.smtp.reply import plain_text

MOST_RECIPIENTS = 200
LONGEST_READ = 256 * 1024

_FIELD = re.compile(r"([A-Za-z][A-Za-z0-9-]{2,60})[ \t]*:[ \t]*(.*)")
_STATUS = re.compile(r"\b([245]\.[0-9]{1,3}\.[0-9]{1,3})\b")
_TYPED = re.compile(r"[ \t]*([A-Za-z0-9_-]{1,40})[ \t]*;[ \t]*(.*)", re.DOTALL)
_COMMENT = re.compile(r"\(([^()]{1,500})\)")
_ADDRESS = re.compile(r"<([^<>\s]{1,320})>|([^\s<>\"',;]{1,255}@[^\s<>\"',;]{1,255})")
_XTEXT = re.compile(r"\+([0-9A-F]{2})")
_UTF8_ESCAPE = re.compile(r"\\x\{([0-9A-Fa-f]{2,6})\}")


@dataclass(slots=True)
class DsnFieldGroup:
    """The fields of one recipient, or of the message, by lower-case name; the first of a name counts."""

    fields: dict[str, str] = field(default_factory=dict)

    def get(self, name: str) -> str:
        return self.fields.get(name, "")

    @property
    def is_recipient(self) -> bool:
        return bool(self.fields.keys() & {"final-recipient", "original-recipient", "action"})

    @property
    def action(self) -> str:
        """`failed`, `delayed`, `delivered`, `relayed`, `expanded`, or what stands there, in lower case."""
        return self.get("action").partition("(")[0].strip().lower()

    @property
    def status(self) -> str | None:
        """The status code (RFC 3463) of the Status field."""
        found = _STATUS.search(self.get("status"))
        return found[1] if found else None

    @property
    def diagnostic(self) -> str:
        """Return the remote server's text without the type in front of it; else the comment of the status."""
        text = self.get("diagnostic-code")
        found = _TYPED.fullmatch(text)
        comment = _COMMENT.search(self.get("status"))
        return (found[2] if found else text).strip() or (comment[1].strip() if comment else "")

    def address(self, name: str) -> str | None:
        """Return the address of a recipient field: xtext (RFC 3461, 4) and UTF-8 forms (RFC 6533,
        3) decoded."""
        found = _TYPED.fullmatch(self.get(name))
        kind, text = (found[1].lower(), found[2]) if found else ("rfc822", self.get(name))
        if kind in ("utf-8", "rfc822"):
            text = _UTF8_ESCAPE.sub(_utf8_character, text)
        if kind == "utf-8" or name == "original-recipient":
            text = _XTEXT.sub(lambda code: chr(int(code[1], 16)), text)
        address = _ADDRESS.search(header_text.clean(text))
        return None if address is None else (address[1] or address[2]).strip("()")

    def host(self, name: str) -> str | None:
        """Return the name of a Remote-MTA or Reporting-MTA."""
        found = _TYPED.fullmatch(self.get(name))
        words = (found[2] if found else self.get(name)).split()
        return words[0][:255] if words else None


def groups(octets: bytes) -> list[DsnFieldGroup]:
    """Return the groups of fields in the order of the part; at most 200."""
    found: list[DsnFieldGroup] = []
    for lines in _blocks(octets[:LONGEST_READ].decode("utf-8", "replace")):
        for group in _divided(lines):
            if len(found) < MOST_RECIPIENTS:
                found.append(group)
    return found


def _blocks(text: str) -> Iterator[list[tuple[str, str]]]:
    """Yield the name and unfolded value of the fields between blank lines."""
    block: list[tuple[str, str]] = []
    for line in [*text.replace("\r\n", "\n").split("\n"), ""]:
        found = _FIELD.fullmatch(line)
        if not line.strip():
            if block:
                yield block
            block = []
        elif line[0] in " \t" and block:
            name, value = block[-1]
            block[-1] = (name, f"{value} {line.strip()}")
        elif found is not None:
            block.append((found[1].lower(), found[2].strip()))


def _divided(fields: list[tuple[str, str]]) -> Iterator[DsnFieldGroup]:
    """Yield the groups that nobody put a blank line between: a second Final-Recipient begins another."""
    group = DsnFieldGroup()
    for name, value in fields:
        if name == "final-recipient" and name in group.fields:
            yield group
            group = DsnFieldGroup()
        group.fields.setdefault(name, plain_text(header_text.shown(value).encode("utf-8", "replace")))
    if group.fields:
        yield group


def _utf8_character(escape: re.Match[str]) -> str:
    number = int(escape[1], 16)
    return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"
