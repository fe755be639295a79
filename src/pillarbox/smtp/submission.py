"""Submission (emails.md section 10): a program logs in with an API key and hands over messages.

Each message is like a `POST /emails`: the same rules, rate limit, idempotency and answers, through
`emails.accept`. `250` is sent only after the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import msgspec

from pillarbox.emails.accept import Accept
from pillarbox.emails.outgoing import BY_SMTP
from pillarbox.emails.requests import parse
from pillarbox.emails.requests.attachment_input import AttachmentsTooLarge, BlockedFile
from pillarbox.emails.requests.parse import MOST_RECIPIENTS, BodiesTooLarge
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.http.failures import problem_for
from pillarbox.kernel.http.idempotency import (
    AlreadyAnswered,
    Idempotency,
    IdempotencyStore,
    RunningKeys,
    fingerprint,
    key_of,
    same,
)
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres import time_limit
from pillarbox.kernel.postgres.commit_window import CommitWindow, ExpectedMessage
from pillarbox.kernel.postgres.time_limit import TimeLimit
from pillarbox.kernel.process.byte_budget import ByteBudget
from pillarbox.kernel.process.offload import IN_PLACE, in_thread, in_thread_if_large
from pillarbox.kernel.security.authentication import (
    Caller,
    CredentialLookup,
    InactiveApiKey,
    InboxKeyMayNot,
    InboxRight,
    InvalidApiKey,
    SuspendedApiKey,
    TeamBlocked,
    usable,
)
from pillarbox.kernel.security.secrets import hash_api_key
from pillarbox.kernel.security.team_rate import TeamRate
from pillarbox.kernel.wire.json_body import refuse_nul
from pillarbox.kernel.wire.problems import (
    ConcurrentIdempotentRequest,
    Forbidden,
    IdempotencyMismatch,
    Problem,
    RateLimited,
    ResourceLocked,
    ServerOverloaded,
)
from pillarbox.mail.message.address import AddressError, Mailbox
from pillarbox.mail.message.parse import ParsedMessage
from pillarbox.mail.message.parse import parse as parse_message
from pillarbox.mail.smtp import answers as say
from pillarbox.mail.smtp.answers import SessionReply, answer
from pillarbox.mail.smtp.session import MailCommand, Path, ReceivedText, SmtpSession
from pillarbox.smtp import message_fields, prometheus

KEY_REFUSED = (SuspendedApiKey, InactiveApiKey, InvalidApiKey, TeamBlocked, InboxKeyMayNot)

TABLE: Final[tuple[tuple[tuple[type[Problem], ...], int, str], ...]] = (
    (KEY_REFUSED, 550, "5.7.1"),
    ((BlockedFile,), 554, "5.7.1"),
    ((AttachmentsTooLarge, BodiesTooLarge), 552, "5.3.4"),
    ((Forbidden,), 550, "5.7.1"),
    ((IdempotencyMismatch,), 554, "5.7.0"),
    ((ConcurrentIdempotentRequest, ResourceLocked, ServerOverloaded), 451, "4.3.0"),
    ((RateLimited,), 451, "4.7.1"),
)
"""The first row that fits."""

QUOTAS: Final = frozenset(("daily_quota_exceeded", "monthly_quota_exceeded"))
REFUSED: Final = (550, "5.6.0")
TROUBLE: Final = (451, "4.3.0")


def reply(problem: Problem) -> SessionReply:
    """Return the answer to a message that is not accepted."""
    return answer(*_code(problem), problem.message)


def _code(problem: Problem) -> tuple[int, str]:
    if problem.name in QUOTAS:
        return 452, "4.7.1"
    for kinds, code, enhanced in TABLE:
        if isinstance(problem, kinds):
            return code, enhanced
    return REFUSED if 400 <= problem.status < 500 else TROUBLE


USERS = frozenset(("resend", "pillarbox"))
SCOPE = "SMTP"
MOST_ENVELOPE = MOST_RECIPIENTS * len(message_fields.CLASSES)
MOST_HOPS = 50
LARGE = 1024 * 1024
MOST_LARGE = 64 * 1024 * 1024
"""Messages over a megabyte that one process works on at once; the next one waits in its file."""

RATE_EXCEEDED = answer(451, "4.7.1", "Too many requests. Please slow down.")
LOGIN_LATER = answer(454, "4.7.0", "The credentials cannot be checked right now, try again later")
LOOP = answer(554, "5.4.6", f"The message has passed more than {MOST_HOPS} servers; this is a loop")


@dataclass(frozen=True, slots=True)
class SubmissionLogin:
    """The login of a session; the key is looked up again for every message."""

    token_hash: bytes
    caller: Caller


class SubmissionHandler:
    """Handles sessions that log in. While `is_closed`, every transaction gets a temporary failure."""

    def __init__(
        self,
        *,
        accept: Accept,
        credentials: CredentialLookup,
        idempotency: IdempotencyStore,
        team_rate: TeamRate,
        rate_limit: int,
        clock: Clock,
        ids: Ids,
        is_closed: Callable[[], bool] = lambda: False,
    ) -> None:
        self._accept = accept
        self._credentials = credentials
        self._answers = idempotency
        self._team_rate = team_rate
        self._rate_limit = rate_limit
        self._clock = clock
        self._ids = ids
        self._is_closed = is_closed
        self._running = RunningKeys()
        self._large = ByteBudget(MOST_LARGE)
        self._commit_window = CommitWindow()

    # Login -------------------------------------------------------------------------------------------

    async def login(self, session: SmtpSession, user: str, password: str) -> SessionReply:
        """Check the credentials; a wrong name costs the same look-up as a wrong key, so the time
        tells nothing."""
        token_hash = hash_api_key(password)
        try:
            with TimeLimit():
                caller = await self._caller(token_hash)
        except KEY_REFUSED:
            caller = None
        except Exception as failure:
            problem_for(failure, self._ids.new())
            return self._logged_in(LOGIN_LATER)
        if caller is None or user.lower() not in USERS:
            return self._logged_in(say.BAD_LOGIN)
        self._credentials.used(caller)
        session.user = SubmissionLogin(token_hash, caller)
        return self._logged_in(say.AUTHENTICATED)

    def _logged_in(self, answer_given: SessionReply) -> SessionReply:
        prometheus.LOGINS.add(1, (str(answer_given.code),))
        return answer_given

    async def _caller(self, token_hash: bytes) -> Caller:
        found = await self._credentials.find(token_hash)
        if found is None:
            raise InvalidApiKey
        caller = usable(found)
        if caller.inbox_id is not None and InboxRight.SEND not in caller.inbox_rights:
            raise InboxKeyMayNot
        return caller

    # The envelope ------------------------------------------------------------------------------------

    def mail(self, session: SmtpSession, mail: MailCommand) -> SessionReply:
        """Count the message for the rate limit; the envelope sender is not used, we write our own."""
        if self._is_closed():
            return say.LATER
        caller = session.user.caller
        limit = self._rate_limit if caller.rate_limit is None else caller.rate_limit
        if limit and not self._team_rate.take_now(caller.team_id, limit).allowed:
            return RATE_EXCEEDED
        session.notes = self._commit_window.expect()
        return say.SENDER_OK

    def recipient(self, session: SmtpSession, path: Path) -> SessionReply:
        if len(session.recipients) >= MOST_ENVELOPE:
            return say.TOO_MANY_RECIPIENTS
        try:
            session.recipients.append(message_fields.recipient(path))
        except AddressError as wrong:
            return answer(553, "5.1.3", wrong.reason)
        return say.RECIPIENT_OK

    def ended(self, session: SmtpSession) -> None:
        """Drop the state of the transaction."""
        session.notes.gone()
        session.notes = None

    # The message -------------------------------------------------------------------------------------

    async def message(self, session: SmtpSession, content: ReceivedText) -> SessionReply:
        # The session runs this in a task of its own.
        time_limit.begin()
        try:
            if content.size <= LARGE:
                return await self._submit(session, content)
            async with self._large.of(content.size):
                return await self._submit(session, content)
        except Exception as failure:
            return reply(problem_for(failure, self._ids.new()))

    async def _submit(self, session: SmtpSession, content: ReceivedText) -> SessionReply:
        login: SubmissionLogin = session.user
        envelope: Sequence[Mailbox] = session.recipients
        expected: ExpectedMessage = session.notes
        caller = await self._caller(login.token_hash)
        self._credentials.used(caller)
        # A coroutine for each step would cost a small mail more than the steps take.
        if content.size <= IN_PLACE:
            message, body = _read(content, envelope)
        else:
            message, body = await in_thread(_read, content, envelope)
        if message_fields.hops(message) > MOST_HOPS:
            return LOOP
        if any(len(body[role]) > MOST_RECIPIENTS for role in message_fields.CLASSES):
            return say.TOO_MANY_RECIPIENTS
        key = key_of(message_fields.idempotency_key(message))
        del message
        if key is None:
            return _queued(await self._store(caller, body, content.size, None, expected))
        made = await in_thread_if_large(content.size, fingerprint, body, is_large=content.size > LARGE)
        wanted = Idempotency(SCOPE, key, made)
        return _queued(await self._store_once(caller, body, content.size, wanted, expected))

    async def _store_once(
        self,
        caller: Caller,
        body: dict[str, Any],
        size: int,
        idempotency: Idempotency,
        expected: ExpectedMessage,
    ) -> bytes:
        """Store it, unless the key has been answered; then the first answer once more."""
        team = caller.team_id
        with self._running.hold(team, idempotency):
            stored = await self._answers.find(team, idempotency.scope, idempotency.key)
            if stored is None:
                try:
                    return await self._store(caller, body, size, idempotency, expected)
                except AlreadyAnswered:
                    stored = await self._answers.find(team, idempotency.scope, idempotency.key)
            if stored is None:
                raise ConcurrentIdempotentRequest
            return same(stored, idempotency).body

    async def _store(
        self,
        caller: Caller,
        body: dict[str, Any],
        size: int,
        key: Idempotency | None,
        expected: ExpectedMessage,
    ) -> bytes:
        now = self._clock.now()
        if size <= IN_PLACE:
            outgoing = parse.outgoing(body, now, is_letter=True, source=BY_SMTP)
        else:
            outgoing = await in_thread(parse.outgoing, body, now, is_letter=True, source=BY_SMTP)
        checked = await self._accept.check(caller, outgoing)
        expected.gone()
        await self._commit_window.wait()
        return await self._accept.store(caller, [checked], idempotency=key, answer=_body)


def _read(content: ReceivedText, envelope: Sequence[Mailbox]) -> tuple[ParsedMessage, dict[str, Any]]:
    message = parse_message(content.read())
    body = message_fields.fields(message, envelope)
    refuse_nul({"text": body["text"], "html": body["html"]})
    return message, body


def _body(ids: Sequence[UUID]) -> bytes:
    """Return the answer that is kept for an idempotency key: the API's."""
    return b'{"id":"%s"}' % str(ids[0]).encode("ascii")


def _queued(body: bytes) -> SessionReply:
    return answer(250, "2.0.0", f"Ok: queued as {msgspec.json.decode(body)['id']}")
