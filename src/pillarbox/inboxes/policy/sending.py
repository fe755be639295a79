"""Applies the policy of an inbox to mail whose From is its address (inboxes.md 3.7).

A message counts before it is stored: what is refused afterwards has counted, and no race sends more than the
limits allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from html import escape
from typing import Final
from uuid import UUID

import asyncpg
import msgspec
from msgspec import structs

from pillarbox.emails.outgoing import OutgoingEmail
from pillarbox.emails.permitted_senders import PolicyLimitReached
from pillarbox.inboxes.inbox.addresses import meant_by
from pillarbox.inboxes.policy import queries, rules
from pillarbox.inboxes.policy.queries import DAY, HOUR, AnsweredPeople
from pillarbox.inboxes.policy.rules import InboxPolicy, RecipientFacts
from pillarbox.inboxes.policy.senders import compared
from pillarbox.inboxes.sending.references import ids
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.security.authentication import Caller
from pillarbox.kernel.wire.email_address import NotAnAddress, email_address
from pillarbox.mail.message.threading import id_key

_BODY_END: Final = "</body>"
_HTML_END: Final = "</html>"


class TooManyMessages(PolicyLimitReached):
    def __init__(self, limit: int, unit: str, seconds: int) -> None:
        super().__init__(
            f"{rules.PREFIX} allows {limit} messages in one {unit}.", {"retry-after": str(max(1, seconds))}
        )


class InboxPolicies:
    """The policies of inboxes, for `emails.accept`."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock) -> None:
        self._pool = pool
        self._clock = clock

    async def applied(self, caller: Caller, outgoing: OutgoingEmail) -> OutgoingEmail:
        """Return the mail with the footer of its inbox; raise where the policy refuses it."""
        db = TeamDb(self._pool, caller.team_id)
        inbox_id = await queries.inbox_of_sender(db, meant_by(outgoing.sender.key))
        policy = None if inbox_id is None else await queries.get(db, inbox_id)
        if inbox_id is None or policy is None:
            return outgoing
        is_person = rules.is_person(caller)
        if is_person and policy.applies_to == "programs":
            return outgoing
        await self._check(db, inbox_id, policy, outgoing, is_person=is_person)
        if policy.messages_per_hour is not None or policy.messages_per_day is not None:
            await self._count(db, inbox_id, policy)
        return outgoing if policy.footer is None else with_footer(outgoing, policy.footer)

    async def _check(
        self, db: TeamDb, inbox_id: UUID, policy: InboxPolicy, outgoing: OutgoingEmail, *, is_person: bool
    ) -> None:
        recipients = [RecipientFacts(recipient.key) for recipient in outgoing.recipients()]
        if policy.needs_facts:
            recipients = await queries.recipients(db, inbox_id, [one.address for one in recipients])
        if outgoing.attachments and not policy.attachments:
            raise rules.AttachmentsRefused
        rules.check_recipients(policy, recipients)
        if policy.reply_only:
            rules.check_reply(recipients, await _people(db, inbox_id, outgoing.headers))
        if is_person or policy.approval == "never":
            return
        is_suspicious = policy.approval == "suspicious" and await queries.is_suspicious(
            db, inbox_id, _named_messages(outgoing.headers), outgoing.answered_id
        )
        if rules.needs_approval(policy, recipients, is_caused_by_suspicious=is_suspicious):
            raise rules.ApprovalNeeded

    async def _count(self, db: TeamDb, inbox_id: UUID, policy: InboxPolicy) -> None:
        now = self._clock.now()
        hour = now.replace(minute=0, second=0, microsecond=0)
        day = hour.replace(hour=0)
        if await queries.spend(db, inbox_id, hour, day):
            return
        if policy.messages_per_day is not None and await queries.is_day_over(db, inbox_id, day):
            raise TooManyMessages(policy.messages_per_day, "day", _seconds(now, day + DAY))
        raise TooManyMessages(policy.messages_per_hour or 0, "hour", _seconds(now, hour + HOUR))


def with_footer(outgoing: OutgoingEmail, footer: str) -> OutgoingEmail:
    """Return the mail with the footer at the end of its text and of its html."""
    text = None if outgoing.text is None else f"{outgoing.text.rstrip()}\n\n{footer}\n"
    if text is None and outgoing.html is None:
        text = f"{footer}\n"
    html = None if outgoing.html is None else _of_html(outgoing.html, footer)
    return structs.replace(outgoing, text=text, html=html)


def _of_html(html: str, footer: str) -> str:
    lines = "<br>".join([escape(line) for line in footer.split("\n")])
    end = _end_of_body(html)
    return f"{html[:end]}<p>{lines}</p>{html[end:]}"


def _end_of_body(html: str) -> int:
    """Return where the last words of the html may stand: in front of the closing tags, if these are all that
    is there. A tag in the midst of the html may stand in a comment, or before a place of a link."""
    body = html.rstrip()
    if body[-len(_HTML_END) :].lower() == _HTML_END:
        body = body[: -len(_HTML_END)].rstrip()
    return len(body) - len(_BODY_END) if body[-len(_BODY_END) :].lower() == _BODY_END else len(html)


def _seconds(now: datetime, until: datetime) -> int:
    return int((until - now).total_seconds()) + 1


def _named_messages(headers: Sequence[tuple[str, str]]) -> list[int]:
    """Return the keys of the messages that the mail answers or refers to."""
    named = [value for name, value in headers if name.lower() in ("in-reply-to", "references")]
    return [id_key(one) for value in named for one in ids(value)]


async def _people(db: TeamDb, inbox_id: UUID, headers: Sequence[tuple[str, str]]) -> set[str] | None:
    """Return the addresses of the message that the mail answers; None where it answers none of the inbox."""
    named = [value for name, value in headers if name.lower() == "in-reply-to"]
    if len(named) != 1 or not named[0].strip():
        return None
    answered = await queries.answered(db, inbox_id, id_key(named[0].strip()))
    return None if answered is None else _people_of(answered)


def _people_of(answered: AnsweredPeople) -> set[str]:
    lists = [answered.cc_list]
    if answered.is_inbound:
        lists += [answered.reply_to_list, answered.header_to]
    else:
        lists.append(answered.to_list)
    texts = [text for column in lists if column for text in msgspec.json.decode(column, type=list[str])]
    found = {address for text in texts if (address := _address(text)) is not None}
    if answered.is_inbound:
        found.add(compared(answered.sender_key))
    return found


def _address(text: str) -> str | None:
    """Return the compared address of `Name <address>` or `address`; None where it is none."""
    bare = text.rpartition("<")[2].removesuffix(">") if text.endswith(">") else text
    try:
        return email_address(bare).address
    except NotAnAddress:
        return None
