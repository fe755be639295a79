"""Complaints: abuse reports of mailbox providers (RFC 5965, RFC 6650; BNC-05).

    report = arf.read(message)
    if report is not None and report.is_complaint: …report.bounce_tokens, report.original_message_id

Addresses in a report are often blacked out, so it is matched to our mail by what only we could have
written: the signed envelope sender in the enclosed mail or in the fields. Message-ID and addresses only
support that. `not-spam` says the contrary of a complaint; reports of failed authentication are none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pillarbox.mail.message import header_block
from pillarbox.mail.message.mime_parts import ParsedPart
from pillarbox.mail.message.parse import ParsedMessage
from pillarbox.mail.reports import dsn_fields, dsn_own_words, verp
from pillarbox.mail.reports.dsn_fields import DsnFieldGroup

REPORT_TYPE: Final = "message/feedback-report"
COMPLAINTS: Final = frozenset(("abuse", "fraud", "virus", "opt-out", "opt-out-list", "other"))
"""Feedback types (RFC 5965, 7.3) by which a person asks for no more of this mail."""
LONGEST_HEAD: Final = 256 * 1024

_COMPLAINT_SUBJECT = re.compile(r"\s*complaint about message from ", re.IGNORECASE)
_TOKEN = re.compile(rb"(?<![a-z0-9-])b-[a-z2-7]{56}(?![a-z0-9])", re.IGNORECASE)
_WORD = re.compile(r"[a-z][a-z-]{0,40}")


@dataclass(frozen=True, slots=True)
class FeedbackReport:
    """A report, and what it tells about the mail it complains about.

    `bounce_tokens` are local parts that look like our envelope senders; whether we made them is for
    `VerpSigner.read` to say. `recipients` may be blacked out.
    """

    feedback_type: str
    recipients: tuple[str, ...]
    bounce_tokens: tuple[str, ...]
    original_message_id: str | None
    original_headers: dict[str, str]
    reporter: str | None
    source_ip: str | None

    @property
    def is_complaint(self) -> bool:
        """Whether the recipient does not want our mail (BNC-05)."""
        return self.feedback_type in COMPLAINTS


def read(message: ParsedMessage) -> FeedbackReport | None:
    """Return the report that this message is, or None when it is none."""
    leaves = list(message.root.leaves())
    part = next((part for part in leaves if part.content_type == REPORT_TYPE), None)
    original = next((part for part in leaves if part.content_type in dsn_own_words.ORIGINAL_TYPES), None)
    if part is not None:
        fields = DsnFieldGroup()
        for group in dsn_fields.groups(message.content(part)):
            fields.fields = group.fields | fields.fields
        return _report(message, fields, original, leaves)
    if original is not None and _COMPLAINT_SUBJECT.match(message.subject):
        # Microsoft's reports have no fields; the enclosed mail is all there is.
        return _report(message, DsnFieldGroup({"feedback-type": "abuse"}), original, leaves)
    if message.first("x-apple-unsubscribe"):
        return _report(message, DsnFieldGroup({"feedback-type": "opt-out"}), None, leaves)
    return None


def _report(
    message: ParsedMessage, fields: DsnFieldGroup, original: ParsedPart | None, leaves: Sequence[ParsedPart]
) -> FeedbackReport:
    enclosed = b"" if original is None else message.content(original)[:LONGEST_HEAD]
    headers = header_block.joined(header_block.readable(header_block.split_message(enclosed).fields))
    kind = _WORD.match(fields.get("feedback-type").strip().lower())
    recipients = [
        fields.address("original-rcpt-to"),
        fields.address("removal-recipient"),
        DsnFieldGroup(headers).address("x-hmxmroriginalrecipient"),
    ]
    raw_fields = "\n".join(fields.fields.values()).encode()
    message_id = headers.get("message-id")
    return FeedbackReport(
        feedback_type=kind[0] if kind else "other",
        recipients=tuple(dict.fromkeys(address for address in recipients if address)),
        bounce_tokens=_tokens(enclosed, raw_fields, _to(message)),
        original_message_id=header_block.message_id(message_id) if message_id else None,
        original_headers=headers,
        reporter=fields.host("reporting-mta") or fields.get("user-agent") or None,
        source_ip=fields.get("source-ip") or None,
    )


def _tokens(*texts: bytes) -> tuple[str, ...]:
    found = [token.decode("ascii").lower() for text in texts for token in _TOKEN.findall(text)]
    return tuple(token for token in dict.fromkeys(found) if verp.LOCAL_PART.fullmatch(token))


def _to(message: ParsedMessage) -> bytes:
    return " ".join(mailbox.address for mailbox in message.to).encode("utf-8", "replace")
