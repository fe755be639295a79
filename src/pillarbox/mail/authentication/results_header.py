"""Writes the results of SPF, DKIM and DMARC as a header field (RFC 8601), and removes forged ones (AR-01).

Everything that comes from the mail or from DNS is written as a quoted string or not at all. So nothing of it
can end a property, open a comment or begin another result.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from pillarbox.mail.authentication.dkim_verify import Dkim
from pillarbox.mail.authentication.dmarc import Dmarc
from pillarbox.mail.authentication.spf import Spf
from pillarbox.mail.message import header_block, header_text

NAME = "Authentication-Results"
_NAME = NAME.lower().encode()
LONGEST_VALUE = 255
LONGEST_NEAR = 64 * 1024
LONGEST_READ = 16_384
"""A field that has no name within so many octets counts as one with our name."""

LONGEST_LINE = 900
"""Our field is folded before it gets longer; 998 octets is what a line may have (RFC 5322, 2.1.1)."""

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`{|}~@/-]+")
_UNSAFE = re.compile(r"[^\x20-\x7e]|[\"\\]")
_COMMENT_MARK = re.compile(r"\\.|[()]", re.DOTALL)
_ID = re.compile(r"(?:\"((?:[^\"\\]|\\.)*)\"|([^\s;(]+))", re.DOTALL)
_BLANKS = re.compile(r"\s*")
_OWN_NAME = re.compile(rb"^authentication-results[ \t]*:", re.IGNORECASE | re.MULTILINE)
_OWN_FIELD = re.compile(
    rb"^(?:authentication-results)[ \t]*:([^\n]*+(?>(?:\n[ \t][^\n]*+)*))\n?", re.IGNORECASE | re.MULTILINE
)
_PROPERTY = re.compile(r" (?=(?:header|smtp|policy)\.)")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def value(authserv_id: str, spf: Spf | None, dkim: Sequence[Dkim], dmarc: Dmarc | None) -> str:
    """Return the value of the field on one line: our name, then a result for each method and signature."""
    results = []
    if spf is not None:
        results.append(_spf(spf))
    results += [_dkim(found) for found in dkim] or ["dkim=none"]
    if dmarc is not None:
        results.append(_dmarc(dmarc))
    return "; ".join([_written(authserv_id), *results])


def field(authserv_id: str, spf: Spf | None, dkim: Sequence[Dkim], dmarc: Dmarc | None) -> bytes:
    """Return the whole field, folded before each result and within long ones, with its CRLF."""
    whole = f"{NAME}: {value(authserv_id, spf, dkim, dmarc)}\r\n"
    return ";\r\n\t".join([_folded(line) for line in whole.split("; ")]).encode("ascii")


def _folded(line: str) -> str:
    return line if len(line) <= LONGEST_LINE else _PROPERTY.sub("\r\n\t", line)


def forged(raw_value: bytes, authserv_id: str) -> bool:
    """Return whether an Authentication-Results that came with the mail claims to be ours (RFC 8601, 5).

    The name is compared without case, comments and quotes; what cannot be read counts as ours.
    """
    text = header_text.unfolded(raw_value[:LONGEST_READ])
    at = _behind_comments(text)
    found = None if at is None else _ID.match(text, at)
    if found is None:
        return True
    name = found[2] if found[1] is None else _ESCAPED.sub(r"\1", found[1])
    ours = authserv_id.lower()
    # Old versions of the field put a version behind the name with a slash.
    return ours in [said.rstrip(".") for said in (name.lower(), name.lower().partition("/")[0])]


def without_forged(raw: bytes, authserv_id: str) -> bytes:
    """Return the message without the Authentication-Results fields that claim to be ours."""
    # Most mails end in CRLF and have no such field: in front of this empty line stands their whole header.
    near = raw.find(b"\r\n\r\n", 0, LONGEST_NEAR)
    if near >= 0 and _NAME not in raw[:near].lower():
        return raw
    begin, end = header_block.extent(raw)
    if _NAME not in raw[begin:end].lower():
        return raw
    kept, at = [], 0
    for found in _own_fields(raw, begin, end):
        if forged(found[1], authserv_id):
            kept.append(raw[at : found.start()])
            at = found.end()
    return b"".join([*kept, raw[at:]]) if kept else raw


def _own_fields(raw: bytes, begin: int, end: int) -> Iterator[re.Match[bytes]]:
    for start, stop in header_block.windows(raw, begin, end):
        for name in _OWN_NAME.finditer(raw, start, stop):
            # The field may go on behind the window.
            found = _OWN_FIELD.match(raw, name.start(), end)
            if found is not None:
                yield found


def _spf(spf: Spf) -> str:
    who = f"smtp.{spf.identity}={_written(spf.domain)}"
    return f"spf={spf.result} {_reason(spf.problem)}{who}"


def _dkim(dkim: Dkim) -> str:
    properties = [
        *([f"header.d={_written(dkim.domain)}"] if dkim.domain else []),
        *([f"header.s={_written(dkim.selector)}"] if dkim.selector else []),
        *([f"header.i={_written(dkim.identity)}"] if dkim.identity else []),
        *([f"header.a={_written(dkim.algorithm)}"] if dkim.algorithm else []),
        *([f"header.b={_written(dkim.signature[:8])}"] if dkim.signature else []),
    ]
    return " ".join([f"dkim={dkim.result}", *_words(_reason(dkim.reason)), *properties])


def _dmarc(dmarc: Dmarc) -> str:
    properties = [f"header.from={_written(dmarc.domain)}"] if dmarc.domain else []
    policy = [f"policy.dmarc={dmarc.policy}"] if dmarc.result in ("pass", "fail") else []
    return " ".join([f"dmarc={dmarc.result}", *_words(_reason(dmarc.reason)), *properties, *policy])


def _reason(text: str | None) -> str:
    """Return the `reason` of a result (2.2), with a blank behind it."""
    return "" if not text else f'reason="{_UNSAFE.sub("?", text)[:LONGEST_VALUE].replace(";", ",")}" '


def _words(text: str) -> Iterable[str]:
    return [text.rstrip()] if text else []


def _written(text: str) -> str:
    """Return a property value: as it is when it is a token, else a quoted string that nothing in it
    can end."""
    text = text[:LONGEST_VALUE]
    if _TOKEN.fullmatch(text):
        return text
    return '"' + _UNSAFE.sub("?", text).replace(";", ",") + '"'


def _behind_comments(text: str) -> int | None:
    """Return where the text goes on behind the comments in front of it, or None when one of them does
    not end."""
    at = _past_blanks(text, 0)
    while text.startswith("(", at):
        depth, at = 1, at + 1
        while depth:
            mark = _COMMENT_MARK.search(text, at)
            if mark is None:
                return None
            depth += {"(": 1, ")": -1}.get(mark[0], 0)
            at = mark.end()
        at = _past_blanks(text, at)
    return at


def _past_blanks(text: str, index: int) -> int:
    found = _BLANKS.match(text, index)
    return index if found is None else found.end()
