"""Turns a report about a recipient into a reply, and into the verdict of the replies' table.

Rows of our own stand before the table for what only reports say: that the time for trying is over, and
how servers without SMTP replies word a mailbox that does not exist.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache, lru_cache
from typing import Final

from pillarbox.mail.reports.replies import (
    DELIVERED,
    TABLE,
    BounceRule,
    BounceType,
    DeliveryOutcome,
    ReplyVerdict,
    SubType,
    classify,
)
from pillarbox.mail.reports.reply_texts import MAILBOX_FULL, TOO_MANY_RECIPIENTS
from pillarbox.mail.smtp.reply import SmtpReply, SmtpStage, plain_text

_CODE = re.compile(r"(?:^|[\s:;<'\"(])([245][0-9][0-9])(?=[\s:;,<'\"\-.#\])]|$)")
_STATUS = re.compile(r"(?<![0-9.])([245]\.[0-9]{1,3}\.[0-9]{1,3})(?![0-9.])")
_LEADING_CODE = re.compile(r"[ :,;]*[245][0-9][0-9](?:[ -]+#?[245]\.[0-9]{1,3}\.[0-9]{1,3}\b)?[ :-]*")
_GENERIC = re.compile(r"[245]\.0\.0")
_DEFAULT_CODE: Final = {"2": 250, "4": 450, "5": 550}

_TRY_AGAIN_TEXT: Final = (
    r"not found,? try again|name service error.{0,120}try again|dns soft error|\bservfail\b|"
    r"temporary (?:dns|name (?:service|server|resolution)|lookup) (?:failure|error)"
)
_TIME_IS_OVER_TEXT: Final = "|".join(
    (
        r"(?:message|envelope|delivery|mail|queue) (?:has |lifetime )?expired|"
        r"delivery time expired|retry time ?out exceeded|in the queue too long",
        r"failing for a long time|unable to deliver message after multiple retries",
    )
)
_EXPIRED_TEXT: Final = "|".join(
    (
        r"retry time not reached|multiple retries|too many (?:times|retries|attempts)|queue lifetime",
        r"giving up\.?$",
        r"(?:could not|unable to|cannot) deliver .{0,30}(?:for|after|in) .{0,30}(?:second|minute|hour)",
        r"time(?:d |-| )?out|connection (?:refused|reset)|no route to host|network (?:is )?unreachable",
        r"host (?:is )?unreachable|did not accept our requests|socket error|aborted after|network error",
        r"temporar(?:y|ily)|try (?:again|later)",
    )
)
_NO_MAILBOX_TEXT: Final = "|".join(
    (
        r"not listed in (?:the )?(?:domino|public name)|no matches found in (?:the )?domino|"
        r"recipient name is not recogni[sz]ed",
        r"répertorié dans l'annuaire|se encuentra en el directorio|im domino.?verzeichnis nicht|"
        r"nicht im (?:domino.?)?(?:verzeichnis|adressbuch)|"
        r"ディレクトリ(?:ー)?に?(?:は)?(?:見つかり|存在し)ません|(?:ディレクトリ(?:ー)?|アドレス帳)の?リストにありません",
        r"unknown recipient\b",
        r"be delivered\.? [^\s]{1,64} wasn.t found at [^\s]",
        r"no valid recipients|invalid user address|email address wasn.t found at",
    )
)
_NO_MAIL_TEXT: Final = "|".join(
    (
        r"dns (?:lookup )?(?:failure|error)\b.{0,60}\bhost .{1,100} not found|"
        r"indicated no smtp service|host does not accept mail|\bnullmx\b|no mx record found for domain",
        r"couldn't find (?:any host (?:by that name|named)|a mail exchanger or ip address)",
        r"illegal host/domain name|because the domain is not reachable|host or domain name not found",
    )
)

_OVER = ReplyVerdict(
    DeliveryOutcome.BOUNCED,
    BounceType.TRANSIENT,
    SubType.GENERAL,
    "The mail server could not be reached in time.",
)
_NO_MAILBOX = ReplyVerdict(
    DeliveryOutcome.BOUNCED, BounceType.PERMANENT, SubType.NO_EMAIL, "The mailbox does not exist."
)
_NO_DOMAIN = ReplyVerdict(
    DeliveryOutcome.BOUNCED,
    BounceType.PERMANENT,
    SubType.NO_EMAIL,
    "The domain does not exist or takes no mail.",
)

_LATER = ReplyVerdict(
    DeliveryOutcome.BOUNCED,
    BounceType.TRANSIENT,
    SubType.GENERAL,
    "The mail server refused the mail for now.",
)
_FULL = ReplyVerdict(
    DeliveryOutcome.BOUNCED, BounceType.TRANSIENT, SubType.MAILBOX_FULL, "The mailbox is full."
)

ROWS: Final[tuple[BounceRule, ...]] = (
    BounceRule(_OVER, codes="5..", enhanced=r"4\.7"),
    BounceRule(_OVER, text=_TRY_AGAIN_TEXT),
    # Exim tries a full mailbox for days, and says both.
    BounceRule(_FULL, codes="5..", text=rf"(?:{MAILBOX_FULL}).{{0,200}}(?:{_TIME_IS_OVER_TEXT})"),
    BounceRule(_OVER, codes="5..", text=_TIME_IS_OVER_TEXT),
    BounceRule(_LATER, codes="5..", text=TOO_MANY_RECIPIENTS),
    # qmail writes 5.1.1 on full mailboxes too.
    BounceRule(_FULL, codes="5..", enhanced=r"1\..*", text=MAILBOX_FULL),
    BounceRule(_NO_DOMAIN, codes="5..", text=_NO_MAIL_TEXT),
    BounceRule(_NO_MAILBOX, codes="5..", text=_NO_MAILBOX_TEXT),
    *TABLE[:-1],
    # Whatever nothing else is known of: perhaps the time for trying was over.
    BounceRule(_OVER, text=_EXPIRED_TEXT),
    TABLE[-1],
)


def reply_of(text: str, status: str | None, code: int | None = None) -> SmtpReply:
    """Return the words of a report as the reply that they quote, with the code that its status stands for."""
    text = plain_text(" ".join(text.split()).encode("utf-8", "replace"))
    found = _CODE.search(text)
    enhanced = _STATUS.search(text)
    enhanced_status = enhanced[1] if enhanced and not _GENERIC.fullmatch(enhanced[1]) else status
    if code is None:
        code = int(found[1]) if found else _DEFAULT_CODE[(enhanced_status or "5")[0]]
    return SmtpReply(code, enhanced_status, text[_end_of_code(text) :].strip())


def _end_of_code(text: str) -> int:
    """Return where the words begin behind a code that stands first."""
    found = _LEADING_CODE.match(text)
    return found.end() if found else len(text) - len(text.lstrip(" :,;.-"))


def says_little(reply: SmtpReply) -> bool:
    """Return whether there is no more than a code, so that other words about the recipient are
    worth reading."""
    return len(_STATUS.sub("", _CODE.sub("", reply.text)).strip(" :;-.")) < 4


@lru_cache(maxsize=64)
def verdict(action: str, reply: SmtpReply) -> ReplyVerdict:
    """Return the verdict for an action of RFC 3464: final for `failed`, whatever class its code has."""
    if action == "failed":
        return _final(classify(reply, SmtpStage.DOT, ROWS))
    if action == "delayed":
        return _delay(classify(replace(reply, code=450), SmtpStage.DOT, ROWS))
    return DELIVERED


@cache
def _final(reply_verdict: ReplyVerdict) -> ReplyVerdict:
    """Return the verdict of a failure, which ends the waiting: what would be a delay is a bounce of the
    delay's kind."""
    if reply_verdict.outcome is DeliveryOutcome.BOUNCED:
        return reply_verdict
    return replace(
        reply_verdict,
        outcome=DeliveryOutcome.BOUNCED,
        bounce_type=reply_verdict.bounce_type or BounceType.UNDETERMINED,
        sub_type=reply_verdict.sub_type or SubType.UNDETERMINED,
        slow_down=False,
    )


@cache
def _delay(reply_verdict: ReplyVerdict) -> ReplyVerdict:
    """Return the verdict of a delay that another server reports, which is nothing for our own pace."""
    return replace(reply_verdict, slow_down=False, retry_host=False)
