"""Bounces: what a delivery status notification reports about each recipient (RFC 3464; BNC-01, BNC-03).

    report = dsn.read(message)
    for found in report.recipients if report else (): found.action, found.recipient, found.verdict

Read are the machine-readable form, wherever it stands, and the free texts of mail servers. Only
`failed` bounces; a delay is told apart from a failure. Which email a report belongs to is known from
the signed address it was sent to and from nothing in it (BNC-02): addresses and ids in here support
that and decide nothing alone. The verdict is that of the same table which judges SMTP answers.

An automatic reply, a receipt, a report that mail was read are no bounces (BNC-07): `read` is None.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import Final

from pillarbox.mail.message import header_block, mime_parts
from pillarbox.mail.message.mime_parts import ParsedPart
from pillarbox.mail.message.parse import ParsedMessage
from pillarbox.mail.reports import dsn_fields, dsn_own_words, dsn_texts, dsn_verdicts
from pillarbox.mail.reports.dsn_fields import DsnFieldGroup
from pillarbox.mail.reports.dsn_own_words import ORIGINAL_TYPES, STATUS_TYPES
from pillarbox.mail.reports.dsn_texts import TextVerdict
from pillarbox.mail.reports.replies import ReplyVerdict
from pillarbox.mail.smtp.reply import SmtpReply, plain_text


class DsnAction(StrEnum):
    """The action reported for a recipient (RFC 3464, 2.3.3)."""

    FAILED = "failed"
    DELAYED = "delayed"
    DELIVERED = "delivered"
    RELAYED = "relayed"
    EXPANDED = "expanded"


@dataclass(frozen=True, slots=True)
class RecipientReport:
    """The report about one recipient; `recipient` is None where a text names nobody.

    `recipient` is the original recipient where it is told, else the final one: the address we sent to.
    `verdict` is of the outcome BOUNCED for a failure, DELAYED for a delay, DELIVERED for the others.
    """

    action: DsnAction
    recipient: str | None
    final_recipient: str | None
    status: str | None
    reply: SmtpReply
    remote_host: str | None
    verdict: ReplyVerdict

    @property
    def diagnostic(self) -> str:
        """Return the server's diagnostic on one line."""
        return str(self.reply)


@dataclass(frozen=True, slots=True)
class DeliveryReport:
    """A whole report, and what it tells about the original message."""

    recipients: tuple[RecipientReport, ...]
    reporting_host: str | None
    envelope_id: str | None
    original_message_id: str | None
    is_structured: bool


def read(message: ParsedMessage) -> DeliveryReport | None:
    """Return the report that this message is, or None when it is none."""
    leaves = list(message.root.leaves())
    status = next((part for part in leaves if part.content_type in STATUS_TYPES), None)
    text = dsn_own_words.text(message)
    if status is not None:
        found = dsn_fields.groups(message.content(status))
    elif "final-recipient:" in text.lower():
        found = dsn_fields.groups(text.encode())
    else:
        found = []
    subjects = cache(lambda: dsn_own_words.subjects(message))
    words = cache(lambda: dsn_texts.text_verdicts(text))
    groups = [group for group in found if group.is_recipient]
    recipients = [_of_group(group, words, subjects, is_alone=len(groups) == 1) for group in groups]
    if not recipients:
        if not _reads_like_a_bounce(message, text, is_report=status is not None):
            return None
        recipients = _of_text(message, text, subjects)
    about = next((group for group in found if not group.is_recipient), DsnFieldGroup())
    return DeliveryReport(
        recipients=tuple(recipients),
        reporting_host=about.host("reporting-mta"),
        envelope_id=about.get("original-envelope-id") or None,
        original_message_id=_original_id(message, leaves),
        is_structured=bool(found),
    )


def _of_group(
    group: DsnFieldGroup,
    words: Callable[[], list[TextVerdict]],
    subjects: Callable[[], list[str]],
    *,
    is_alone: bool,
) -> RecipientReport:
    """Return the report of one group; `words` are those written for people, which may say why."""
    action = _action(group)
    final = group.address("final-recipient")
    fields = said = dsn_verdicts.reply_of(group.diagnostic, group.status)
    verdict = _without_subjects(
        lambda text: dsn_verdicts.verdict(action.value, replace(fields, text=text)), fields.text, subjects
    )
    if action is DsnAction.FAILED and dsn_verdicts.says_little(said):
        known = [address for address in (final, group.address("original-recipient")) if address]
        written = _about(words(), known, is_alone=is_alone)
        if written is not None:
            said = _with_words(fields, written)
            verdict = _without_subjects(
                lambda text: dsn_verdicts.verdict(
                    action.value, _with_words(fields, written._replace(text=text))
                ),
                written.text,
                subjects,
            )
    return RecipientReport(
        action=action,
        recipient=group.address("original-recipient") or final,
        final_recipient=final,
        status=group.status or said.enhanced,
        reply=said,
        remote_host=group.host("remote-mta"),
        verdict=verdict,
    )


def _about(verdicts: Sequence[TextVerdict], known: Sequence[str], *, is_alone: bool) -> TextVerdict | None:
    """Return the words about this recipient. Those about another address are theirs only where there
    is no doubt."""
    keys = {address.lower() for address in known}
    about_it = [said for said in verdicts if said.recipient is None or said.recipient.lower() in keys]
    if not about_it and is_alone and len(verdicts) == 1:
        about_it = [*verdicts]
    return next((said for said in about_it if said.text), None)


def _with_words(reply: SmtpReply, words: TextVerdict) -> SmtpReply:
    if words.code is None:
        return replace(reply, text=plain_text(f"{reply.text} {words.text}".strip().encode()))
    return dsn_verdicts.reply_of(words.text, words.status)


def _without_subjects(
    judged: Callable[[str], ReplyVerdict], words: str, subjects: Callable[[], list[str]]
) -> ReplyVerdict:
    """Return the verdict for these words. Reporters put the subject of our mail into their own sentences:
    what suppresses must do so without it."""
    verdict = judged(words)
    if not verdict.suppresses or not subjects():
        return verdict
    other = judged(dsn_own_words.without(words, subjects()))
    return verdict if other.suppresses else other


def _action(group: DsnFieldGroup) -> DsnAction:
    """Return the action, or what the status makes of a wrong or missing one."""
    try:
        return DsnAction(group.action)
    except ValueError:
        first = (group.status or "5")[0]
        return {"2": DsnAction.DELIVERED, "4": DsnAction.DELAYED}.get(first, DsnAction.FAILED)


def _of_text(message: ParsedMessage, text: str, subjects: Callable[[], list[str]]) -> list[RecipientReport]:
    known = dsn_texts.ADDRESS.findall(message.first("x-failed-recipients") or "")
    is_delay = bool(_DELAY.search(message.subject) or _DELAY.search(text))
    action = DsnAction.DELAYED if is_delay else DsnAction.FAILED
    return [
        _of_words(said, action, subjects)
        for said in dsn_texts.said_in_json(text) or dsn_texts.text_verdicts(text, known)
    ]


def _of_words(
    text_verdict: TextVerdict, action: DsnAction, subjects: Callable[[], list[str]]
) -> RecipientReport:
    code = text_verdict.code or (450 if action is DsnAction.DELAYED else None)
    reply = dsn_verdicts.reply_of(text_verdict.text, text_verdict.status, code)
    verdict = _without_subjects(
        lambda text: dsn_verdicts.verdict(
            action.value, dsn_verdicts.reply_of(text, text_verdict.status, code)
        ),
        text_verdict.text,
        subjects,
    )
    return RecipientReport(
        action=action,
        recipient=text_verdict.recipient,
        final_recipient=text_verdict.recipient,
        status=reply.enhanced,
        reply=reply,
        remote_host=None,
        verdict=verdict,
    )


_DAEMON: Final = re.compile(
    r"mailer-?daemon|mail.?deliver\w*.?(?:sub)?system|post_?master|mail.?delivery|system administrator|"
    r"mdaemon|ndr administrator|mail.?system",
    re.IGNORECASE,
)
_SUBJECT: Final = re.compile(
    r"undeliver|returned mail|returned to sender|returning message|delivery (?:status )?notif|delivery fail|"
    r"delivery (?:has )?(?:problem|error|unsuccessful|delayed)|failure notice|"
    r"fail(?:ed|ure) (?:to deliver|delivery)|"
    r"mail (?:delivery )?(?:failure|failed|error|system error)|message (?:delivery|not delivered|could not)|"
    r"non[- ]?deliver|could(?: not|n't) be delivered|error sending your mail|unzustellbar|nicht zugestellt|"
    r"non remis|no se ha podido entregar|не доставлено|メールエラー|delayed mail|delivery_failure",
    re.IGNORECASE,
)
_BODY: Final = re.compile(
    r"could(?: not|n't) be delivered|was not delivered|unable to deliver|wasn't able to deliver|"
    r"undeliverable|did not reach|delivery (?:has )?failed|failed permanently|cannot be delivered|"
    r"error (?:occurred )?(?:while )?(?:trying |attempting )?(?:to )?deliver|permanent(?: fatal)? error|"
    r"returned to sender|was rejected by|message not delivered|error message below",
    re.IGNORECASE,
)
_DELAY: Final = re.compile(
    r"\(delay\)|delayed (?:mail|for more than)|delivery (?:status )?(?:notification:? )?(?:warning|delay)|"
    r"has been delayed|warning(?: message)? only|still being retried|"
    r"will (?:be retried|keep trying|continue)|"
    r"not yet been delivered|temporary failure report|do not need to re-?send|notification: warning|"
    r"message is delayed",
    re.IGNORECASE,
)
_REPLY_SUBJECT: Final = re.compile(
    r"(?:auto(?:matic|mated)?[ -]?(?:reply|response|answer)|out of (?:the )?office|vacation|abwesen|"
    r"absence|réponse automatique|respuesta autom|自動(?:返信|応答))",
    re.IGNORECASE,
)


def is_automatic_reply(message: ParsedMessage) -> bool:
    """Return whether it is a vacation text, a receipt or another answer of a program (RFC 3834; BNC-07), not
    of a mail server."""
    submitted = (message.first("auto-submitted") or "no").partition(";")[0].strip().lower()
    return read(message) is None and (
        submitted not in ("no", "")
        or message.root.parameters.get("report-type", "").lower() == "disposition-notification"
        or any(message.first(name) for name in ("x-autoreply", "x-autorespond", "x-auto-response-suppress"))
        or (message.first("precedence") or "").strip().lower() in ("auto_reply", "junk")
        or bool(_REPLY_SUBJECT.search(message.subject))
    )


def _reads_like_a_bounce(message: ParsedMessage, text: str, *, is_report: bool) -> bool:
    """Return whether a message without usable fields is written by a mail server about an
    undelivered mail."""
    if message.root.parameters.get("report-type", "").lower() in (
        "disposition-notification",
        "feedback-report",
    ):
        return False
    if is_report or message.first("x-failed-recipients") or dsn_texts.said_in_json(text):
        return True
    if _REPLY_SUBJECT.match(message.subject.removeprefix("Re:").strip()):
        return False
    signs = [
        bool(_DAEMON.search(message.author)),
        bool(_SUBJECT.search(message.subject)),
        bool(_BODY.search(text)),
        message.first("return-path") == "<>",
    ]
    return sum(signs) >= 2


def _original_id(message: ParsedMessage, leaves: Sequence[ParsedPart]) -> str | None:
    """Return the Message-ID of the mail that the report is about, where a copy of it or its header
    is enclosed."""
    for part in leaves:
        if part.content_type in ORIGINAL_TYPES:
            head = header_block.split_message(mime_parts.content(message.raw, part)).fields
            named = header_block.first_of_each(head)
            return header_block.message_id(named.get("message-id", b"").decode("utf-8", "replace"))
    found = _ID_LINE.search((message.text or "")[: dsn_own_words.LONGEST_TEXT])
    return found[1] if found else None


_ID_LINE: Final = re.compile(r"^[ \t>]*Message-ID:[ \t]*(<[^<>\s]{1,998}>)", re.IGNORECASE | re.MULTILINE)
