"""Classifies an SMTP answer for one recipient: a table, read from the top, the first matching row wins.

The order of judgement is that of standards OUT-06 (first digit, then enhanced code, then known texts), with
one exception: texts that name a cause which has nothing to do with the address (block lists, a bad sender, a
rate) go before the enhanced code. Many servers put 5.1.1 or 5.2.1 on those as well.

Permanent means that the address is bad, and a Permanent bounce suppresses it for the whole team
(contract decision 23). So a row may say Permanent only where the answer leaves no doubt; every other refusal
is Undetermined, or Transient where a later mail can succeed.

Texts are compared in lower case, after everything that looks like an address was taken out: a mailbox
called `spamhaus@` or a quoted sender must not decide. An installation may put rows of its own first:
`classify(reply, stage, (*own_rows, *TABLE))`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import Final

from pillarbox.mail.reports.reply_texts import (
    ATTACHMENT,
    AUTHENTICATION,
    BAD_ADDRESS,
    BAD_DOMAIN,
    BLOCKED,
    CONTENT,
    GREYLISTED,
    HEADER,
    INACTIVE,
    INBOX_RATE,
    INVALID_DOMAIN,
    MAILBOX_EXCEEDS,
    MAILBOX_FULL,
    OUT_OF_ORDER,
    POLICY,
    RELAYING,
    SENDER,
    SENDER_OTHERWISE,
    SLOW_DOWN,
    STOPPED,
    TOO_LARGE,
    TOO_MANY_RECIPIENTS,
)
from pillarbox.mail.smtp.reply import SmtpReply, SmtpStage

from . import quoted_replies


class DeliveryOutcome(StrEnum):
    """The outcome for the recipient in this attempt."""

    DELIVERED = "delivered"
    DELAYED = "delayed"
    BOUNCED = "bounced"


class BounceType(StrEnum):
    """`bounce.type` of the webhook contract."""

    PERMANENT = "Permanent"
    TRANSIENT = "Transient"
    UNDETERMINED = "Undetermined"


class SubType(StrEnum):
    """`bounce.subType` of the webhook contract."""

    UNDETERMINED = "Undetermined"
    GENERAL = "General"
    NO_EMAIL = "NoEmail"
    MAILBOX_FULL = "MailboxFull"
    MESSAGE_TOO_LARGE = "MessageTooLarge"
    CONTENT_REJECTED = "ContentRejected"
    ATTACHMENT_REJECTED = "AttachmentRejected"


@dataclass(frozen=True, slots=True)
class ReplyVerdict:
    """The meaning of an answer. For a delay, the types are those of the bounce that ends a long delay.

    `retry_host`: the answer speaks for this host only, the next one of the domain may be tried now.
    `slow_down`: the site asks for fewer connections or mails (OUT-12), not for this mail alone.
    """

    outcome: DeliveryOutcome
    bounce_type: BounceType | None
    sub_type: SubType | None
    reason: str
    retry_host: bool = False
    slow_down: bool = False

    @property
    def suppresses(self) -> bool:
        """Whether the address is bad, so that no later mail of the team goes there."""
        return self.outcome is DeliveryOutcome.BOUNCED and self.bounce_type is BounceType.PERMANENT


@dataclass(frozen=True, slots=True)
class BounceRule:
    """One line of the table: what must match (what is left out matches anything), and the verdict.

    `codes` and `enhanced` are whole-match patterns for the three digits and for `subject.detail`
    (`1.1` in 5.1.1); `text` is searched in the cleaned text.
    """

    verdict: ReplyVerdict
    codes: str = "..."
    enhanced: str | None = None
    text: str | None = None
    stages: frozenset[SmtpStage] | None = None


def _delayed(reason: str, sub_type: SubType = SubType.GENERAL, *, slow_down: bool = False) -> ReplyVerdict:
    return ReplyVerdict(DeliveryOutcome.DELAYED, BounceType.TRANSIENT, sub_type, reason, slow_down=slow_down)


def _bounced(bounce_type: BounceType, sub_type: SubType, reason: str) -> ReplyVerdict:
    return ReplyVerdict(DeliveryOutcome.BOUNCED, bounce_type, sub_type, reason)


DELIVERED: Final = ReplyVerdict(DeliveryOutcome.DELIVERED, None, None, "The mail server accepted the mail.")

_GREYLISTED = _delayed("The mail server asks new senders to try again later.")
_TOO_FAST = _delayed("The mail server asks for fewer mails or connections.", slow_down=True)
_FULL_FOR_NOW = _delayed("The mailbox is full at the moment.", SubType.MAILBOX_FULL)
_TOO_MANY = _delayed("The mail server takes fewer recipients at a time.")
_CLOSING = _delayed("The mail server ended the session.", slow_down=True)
_LOST = _delayed("The mail server ended the session or did not answer.")
_NOT_NOW = _delayed("The mail server cannot take the mail at the moment.")
_HOST_REFUSES = _delayed("This mail server does not talk to us at the moment.")
_NOT_SMTP = _delayed("The mail server gave an answer that makes no sense.")

_HOST_TAKES_NO_MAIL = _bounced(
    BounceType.UNDETERMINED, SubType.GENERAL, "The host of the domain takes no mail."
)
_NO_MAILBOX = _bounced(BounceType.PERMANENT, SubType.NO_EMAIL, "The mailbox does not exist.")
_NO_DOMAIN = _bounced(BounceType.PERMANENT, SubType.NO_EMAIL, "The domain does not exist or takes no mail.")
_FULL = _bounced(BounceType.TRANSIENT, SubType.MAILBOX_FULL, "The mailbox is full.")
_BUSY_INBOX = _bounced(BounceType.TRANSIENT, SubType.GENERAL, "The mailbox gets too much mail at the moment.")
_LATER = _bounced(BounceType.TRANSIENT, SubType.GENERAL, "The mail server refused the mail for now.")
_LARGE = _bounced(
    BounceType.UNDETERMINED, SubType.MESSAGE_TOO_LARGE, "The mail is larger than the server takes."
)
_ATTACHMENT = _bounced(
    BounceType.UNDETERMINED, SubType.ATTACHMENT_REJECTED, "The mail server refuses an attachment."
)
_CONTENT = _bounced(
    BounceType.UNDETERMINED, SubType.CONTENT_REJECTED, "The mail server refuses the content of the mail."
)
_POLICY = _bounced(
    BounceType.UNDETERMINED, SubType.GENERAL, "The mail server refuses the mail by its policy."
)
_BLOCKED = _bounced(BounceType.UNDETERMINED, SubType.GENERAL, "The mail server refuses the sending system.")
_SENDER = _bounced(BounceType.UNDETERMINED, SubType.GENERAL, "The mail server refuses the sender.")
_UNREACHABLE = _bounced(
    BounceType.UNDETERMINED, SubType.GENERAL, "No mail server of the domain can be reached."
)
_REFUSED = _bounced(BounceType.UNDETERMINED, SubType.UNDETERMINED, "The mail server refused the mail.")

_BEFORE_MAIL = frozenset(
    {SmtpStage.CONNECT, SmtpStage.BANNER, SmtpStage.HELLO, SmtpStage.TLS, SmtpStage.AUTH},
)
_BEFORE_RCPT = _BEFORE_MAIL | {SmtpStage.MAIL}
# At MAIL a server knows no recipient yet: nothing it says there makes an address bad.
_ABOUT_RECIPIENT = frozenset({SmtpStage.ROUTE, SmtpStage.RCPT, SmtpStage.DATA, SmtpStage.DOT})
# 5.6.x and 5.7.x never make an address bad, whatever their text says (BNC-03).
_BAD_ADDRESS_CODES = r"1\.(?:[1236]|10)|2\.1"
_NOT_POLICY = r"(?:[^67]\..*)?"
_AT_RCPT = frozenset({SmtpStage.RCPT})
_AT_MAIL = frozenset({SmtpStage.MAIL})
_AT_DOT = frozenset({SmtpStage.DOT})

TABLE: Final[tuple[BounceRule, ...]] = (
    BounceRule(DELIVERED, codes="2..", stages=_AT_DOT),
    BounceRule(_NOT_SMTP, codes="[^45].."),
    # Temporary, RFC 5321 4.2.1. A 421 that we made up ourselves says nothing about the site's limits.
    BounceRule(_GREYLISTED, codes="4..", text=GREYLISTED),
    BounceRule(_FULL_FOR_NOW, codes="4..", enhanced=r"2\.2"),
    BounceRule(_NOT_NOW, codes="4..", enhanced=r"3\.1|4\.5"),
    BounceRule(_FULL_FOR_NOW, codes="4..", text=MAILBOX_FULL),
    BounceRule(_NOT_NOW, codes="4[^2].|42[^1]", text=INBOX_RATE),
    BounceRule(_TOO_MANY, codes="45.", enhanced=r"5\.3"),
    BounceRule(_TOO_FAST, codes="4..", text=SLOW_DOWN),
    BounceRule(_CLOSING, codes="421"),
    BounceRule(_TOO_FAST, codes="4[^2].|42[^1]", enhanced=r"7\.(0|28|29)", stages=_BEFORE_RCPT),
    BounceRule(_NOT_NOW, codes="4.."),
    # Refusals of a host, before it knew of any mail (RFC 7504; OUT-06).
    BounceRule(_HOST_TAKES_NO_MAIL, codes="521", stages=_BEFORE_MAIL),
    BounceRule(_HOST_REFUSES, stages=_BEFORE_MAIL),
    # Refusals whose text names another cause than their enhanced code.
    BounceRule(_TOO_MANY, codes="5..", enhanced=r"5\.3", stages=_AT_RCPT),
    BounceRule(_TOO_MANY, codes="5..", text=TOO_MANY_RECIPIENTS, stages=_AT_RCPT),
    BounceRule(_LATER, text=GREYLISTED),
    BounceRule(_BUSY_INBOX, text=INBOX_RATE),
    BounceRule(_BLOCKED, text=BLOCKED),
    BounceRule(_ATTACHMENT, enhanced=r"[67]\..*", text=ATTACHMENT),
    BounceRule(_CONTENT, enhanced=r"[67]\..*", text=CONTENT),
    BounceRule(_NO_MAILBOX, enhanced=_BAD_ADDRESS_CODES, text=INACTIVE, stages=_ABOUT_RECIPIENT),
    BounceRule(_POLICY, text=STOPPED),
    BounceRule(_SENDER, enhanced=r"1\.[78]"),
    BounceRule(_SENDER, text=SENDER),
    BounceRule(_SENDER, text=SENDER_OTHERWISE),
    BounceRule(_CONTENT, text=HEADER),
    BounceRule(_POLICY, text=RELAYING),
    BounceRule(_POLICY, text=AUTHENTICATION),
    # Servers put the codes of a bad address on all sorts of refusals: the words must name no other cause.
    BounceRule(_FULL, enhanced=_BAD_ADDRESS_CODES, text=MAILBOX_FULL),
    BounceRule(_LATER, enhanced=_BAD_ADDRESS_CODES, text=OUT_OF_ORDER),
    BounceRule(_NO_DOMAIN, enhanced=_BAD_ADDRESS_CODES, text=BAD_DOMAIN, stages=_ABOUT_RECIPIENT),
    BounceRule(_NO_MAILBOX, enhanced=_BAD_ADDRESS_CODES, text=BAD_ADDRESS, stages=_ABOUT_RECIPIENT),
    BounceRule(_LARGE, enhanced=_BAD_ADDRESS_CODES, text=TOO_LARGE),
    BounceRule(_ATTACHMENT, enhanced=_BAD_ADDRESS_CODES, text=ATTACHMENT),
    BounceRule(_CONTENT, enhanced=r"1\.(?:[126]|10)|2\.1", text=CONTENT),
    BounceRule(_POLICY, enhanced=_BAD_ADDRESS_CODES, text=POLICY),
    BounceRule(_LATER, enhanced=_BAD_ADDRESS_CODES, text=SLOW_DOWN),
    # Refusals by enhanced code (RFC 3463, 5248, 7505, 6531).
    BounceRule(_LARGE, enhanced=r"3\.4|2\.3"),
    BounceRule(_FULL, enhanced=r"2\.2"),
    BounceRule(_NO_DOMAIN, enhanced=r"1\.(2|10)", stages=_ABOUT_RECIPIENT),
    BounceRule(_NO_MAILBOX, enhanced=r"1\.[136]|2\.1", stages=_ABOUT_RECIPIENT),
    BounceRule(_NO_DOMAIN, codes="556", stages=_ABOUT_RECIPIENT),
    BounceRule(_UNREACHABLE, enhanced=r"4\.[46]", stages=frozenset({SmtpStage.ROUTE})),
    BounceRule(_NO_DOMAIN, enhanced=r"4\.4", text=INVALID_DOMAIN, stages=_ABOUT_RECIPIENT),
    # Refusals by text.
    BounceRule(_FULL, text=MAILBOX_EXCEEDS),
    BounceRule(_LARGE, text=TOO_LARGE),
    BounceRule(_FULL, text=MAILBOX_FULL),
    BounceRule(_LATER, text=OUT_OF_ORDER),
    BounceRule(_NO_DOMAIN, codes="5[15].", enhanced=_NOT_POLICY, text=BAD_DOMAIN, stages=_ABOUT_RECIPIENT),
    BounceRule(_NO_MAILBOX, codes="5[15].", enhanced=_NOT_POLICY, text=BAD_ADDRESS, stages=_ABOUT_RECIPIENT),
    BounceRule(_ATTACHMENT, text=ATTACHMENT),
    BounceRule(_CONTENT, text=CONTENT),
    BounceRule(_CONTENT, enhanced=r"6\.[0-9]+"),
    BounceRule(_POLICY, enhanced=r"7\.[0-9]+"),
    BounceRule(_POLICY, text=POLICY),
    BounceRule(_LATER, text=SLOW_DOWN),
    # What only the code tells.
    BounceRule(_LARGE, codes="552", stages=_AT_MAIL),
    BounceRule(_FULL, codes="552"),
    BounceRule(_POLICY, codes="53.|50."),
    BounceRule(_REFUSED),
)


def classify(reply: SmtpReply, stage: SmtpStage, table: Sequence[BounceRule] = TABLE) -> ReplyVerdict:
    """Return the verdict of the first row that matches; every answer at every stage has one.

    What a reply quotes of another server can only take a suppression away: `550 5.1.0 Unknown address
    error 550-'5.7.1 content restrictions'` is about the content.
    """
    if stage is SmtpStage.DOT and reply.is_yes and table is TABLE:
        return DELIVERED
    verdict = _of_first_row(reply, stage, table)
    if verdict.suppresses:
        quoted = quoted_replies.last(reply)
        inner = None if quoted is None else _of_first_row(quoted, stage, table)
        if inner is not None and not inner.suppresses:
            return _bounce_of(inner)
    return verdict


def _of_first_row(reply: SmtpReply, stage: SmtpStage, table: Sequence[BounceRule]) -> ReplyVerdict:
    text = searched_text(reply)
    enhanced = _subject_and_detail(reply)
    for row in table:
        if _matches(row, reply, stage, enhanced, text):
            return _completed(row.verdict, reply, stage)
    return _completed(_NOT_SMTP, reply, stage)


def searched_text(reply: SmtpReply) -> str:
    """Return the text as patterns see it: lower case, one space between words, without addresses."""
    return " ".join(_ADDRESS.sub(" x ", reply.text.lower().replace("’", "'")).split())


def _completed(verdict: ReplyVerdict, reply: SmtpReply, stage: SmtpStage) -> ReplyVerdict:
    """Return the row's verdict with what depends on the stage: before the first RCPT the next host
    may try."""
    if reply.ours and verdict is _CLOSING:
        verdict = _LOST
    if verdict.outcome is DeliveryOutcome.DELAYED or stage in _BEFORE_MAIL:
        return _for_host(verdict) if stage in _BEFORE_RCPT else verdict
    return verdict


@cache
def _bounce_of(verdict: ReplyVerdict) -> ReplyVerdict:
    """Return the bounce that a quoted reply makes, also one that was a delay to the server that quotes it."""
    return replace(verdict, outcome=DeliveryOutcome.BOUNCED, slow_down=False, retry_host=False)


@cache
def _for_host(verdict: ReplyVerdict) -> ReplyVerdict:
    return replace(verdict, retry_host=True)


def _matches(row: BounceRule, reply: SmtpReply, stage: SmtpStage, enhanced: str, text: str) -> bool:
    return (
        (row.stages is None or stage in row.stages)
        and _pattern(row.codes).fullmatch(str(reply.code)) is not None
        and (row.enhanced is None or _pattern(row.enhanced).fullmatch(enhanced) is not None)
        and (row.text is None or _pattern(row.text).search(text) is not None)
    )


@cache
def _pattern(source: str) -> re.Pattern[str]:
    return re.compile(source, re.ASCII)


_IN_ADDRESS = r"[^\s@<>()\[\]:;,'\"（）＜＞「」，。、；：]"
_ADDRESS = re.compile(rf"<[^<>\s]{{0,256}}>|{_IN_ADDRESS}{{1,64}}@{_IN_ADDRESS}{{1,255}}")
_QMAIL_CODE = re.compile(r"\(#([245]\.[0-9]{1,3}\.[0-9]{1,3})\)")


def _subject_and_detail(reply: SmtpReply) -> str:
    """Return the subject and detail, `1.1` of 5.1.1, also where it stands at the end as qmail writes
    it: `(#5.1.1)`."""
    enhanced = reply.enhanced
    if enhanced is None:
        match = _QMAIL_CODE.search(reply.text)
        enhanced = match[1] if match else ""
    return enhanced.partition(".")[2]
