"""Sending by SMTP: to a relay, or to the recipients' own servers (standards group OUT)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, Protocol

from pillarbox.delivery import prometheus
from pillarbox.delivery.composing import Composer
from pillarbox.delivery.items import Item, OpenRecipient, Wire
from pillarbox.delivery.rate_control import SiteSignal
from pillarbox.delivery.reports import RecipientResult, Report
from pillarbox.delivery.site_scheduler import Site
from pillarbox.delivery.smtp.connections import ConnectionKey, Connections
from pillarbox.delivery.smtp.known_domains import KnownDomains
from pillarbox.delivery.smtp.relay_faults import RelayFault
from pillarbox.delivery.smtp.tls_modes import TlsModes
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.process import faults
from pillarbox.mail.reports.replies import DeliveryOutcome, ReplyVerdict, classify
from pillarbox.mail.smtp.client import (
    ConnectFailed,
    SmtpConnection,
    SmtpReply,
    SmtpStage,
    TlsInfo,
    TlsMode,
    Transaction,
)
from pillarbox.mail.smtp.mta_sts import Policy
from pillarbox.mail.smtp.mx import NO_DOMAIN, Host, Hosts, NoHosts
from pillarbox.mail.smtp.reply import our_reply
from pillarbox.timeline.rules import Bounce, EventDetail, EventKind

log = get("delivery")

MOST_SESSIONS = 2
"""Servers that one attempt talks to; the reply of the second one counts for the domain."""

SILENT_SECONDS = 30.0
"""A server that says nothing for so long is given up while other mail waits for its slot. Where nobody
waits, RFC 5321, 4.5.3.2 holds; and it always holds between the final dot and its answer."""

SLOW_OPENING = our_reply(421, "4.4.1", "the server opened no session while other mail waited for it")

RETRY_LOOKUP = our_reply(
    451,
    "4.4.3",
    "the domain does not exist at the moment; it has received mail before and is looked up again",
)

POINTS = {
    SmtpStage.RCPT: "delivery.after_mail",
    SmtpStage.DATA: "delivery.before_dot",
    SmtpStage.DOT: "delivery.after_dot",
}
"""Fault points inside a transaction, by the stage that begins there."""

KINDS = {
    DeliveryOutcome.DELIVERED: EventKind.DELIVERED,
    DeliveryOutcome.BOUNCED: EventKind.BOUNCED,
    DeliveryOutcome.DELAYED: EventKind.DELIVERY_DELAYED,
}


class NextHops(Protocol):
    """Where a destination's mail goes, and how much encryption that asks for."""

    def site(self, destination: str) -> Site: ...

    async def hosts(self, destination: str) -> Hosts | NoHosts: ...

    async def policy(self, destination: str) -> Policy | None: ...

    def refusal(self, failed: ConnectFailed) -> RelayFault | None:
        """Return why a relay refuses us, where that is no matter of the mail."""
        ...

    def refusal_in(self, done: Transaction) -> RelayFault | None: ...

    def port(self) -> int: ...

    def tls(self, *, required: bool) -> TlsMode: ...


class _RecipientReply(NamedTuple):
    """The last reply for a recipient in this attempt."""

    host: str | None
    stage: SmtpStage
    reply: SmtpReply
    verdict: ReplyVerdict
    uncertain: bool = False
    tls: str | None = None
    tls_missing: bool = False


@dataclass(slots=True)
class _Attempt:
    item: Item
    wire: Wire
    mail_from: str
    fence: Callable[[], bool]
    left: dict[int, OpenRecipient]
    said: dict[int, _RecipientReply] = field(default_factory=dict)
    offered: bool = False
    abandoned: bool = False
    sessions: int = 0
    used: list[tuple[ConnectionKey, SmtpConnection]] = field(default_factory=list)
    signal: SiteSignal = SiteSignal.SILENT
    held: RelayFault | None = None
    policy: Policy | None = None


class SmtpTransport:
    """Sends items on pooled SMTP connections, with no database transaction open."""

    def __init__(
        self,
        *,
        clock: Clock,
        next_hops: NextHops,
        composer: Composer,
        connections: Connections,
        return_path: Callable[[Item], str],
        known_domains: KnownDomains | None = None,
    ) -> None:
        self._clock = clock
        self._next_hops = next_hops
        self._composer = composer
        self._connections = connections
        self._return_path = return_path
        self._known_domains = known_domains
        self._tls_modes = TlsModes(clock)

    def site(self, destination: str) -> Site:
        return self._next_hops.site(destination)

    async def close(self) -> None:
        await self._connections.close()

    async def send(self, item: Item, fence: Callable[[], bool]) -> Report:
        """Try the destination's servers in order until every recipient has a final reply."""
        wire = await self._composer.wire(item.email, item.copy)
        started = self._clock.now()
        attempt = _Attempt(
            item=item,
            wire=wire,
            mail_from=self._return_path(item),
            fence=fence,
            left={t.position: t for t in item.targets},
        )
        found = await self._next_hops.hosts(item.destination)
        try:
            if isinstance(found, NoHosts):
                self._no_hosts(attempt, await self._doubted(item, found))
            else:
                attempt.policy = await self._next_hops.policy(item.destination)
                await self._try_hosts(attempt, found.hosts)
        except BaseException:
            self._release(attempt, settled=False)
            raise
        host = next((said.host for said in attempt.said.values() if said.host), None)
        return Report(
            started_at=started,
            ended_at=self._clock.now(),
            offered=attempt.offered,
            results=[
                RecipientResult(position, *_result_of(said))
                for position, said in sorted(attempt.said.items())
            ],
            host=host,
            abandoned=attempt.abandoned,
            held=attempt.held,
            mail_from=attempt.mail_from,
            signal=attempt.signal,
            on_settled=lambda: self._release(attempt, settled=True),
            on_settle_failed=lambda: self._release(attempt, settled=False),
        )

    def _release(self, attempt: _Attempt, *, settled: bool) -> None:
        for address, connection in attempt.used:
            if settled:
                self._connections.put(address, connection)
            else:
                connection.abort()
        attempt.used.clear()

    async def _doubted(self, item: Item, no_hosts: NoHosts) -> NoHosts:
        """Return the outcome of a look-up; a domain that was reached before and does not exist any more is
        looked up once more, later."""
        if self._known_domains is None or no_hosts.reply != NO_DOMAIN:
            return no_hosts
        doubted = await self._known_domains.must_look_again(item.team_id, item.destination)
        return NoHosts(RETRY_LOOKUP) if doubted else no_hosts

    def _no_hosts(self, attempt: _Attempt, no_hosts: NoHosts) -> None:
        verdict = classify(no_hosts.reply, SmtpStage.ROUTE)
        for position in attempt.left:
            attempt.said[position] = _RecipientReply(None, SmtpStage.ROUTE, no_hosts.reply, verdict)

    async def _try_hosts(self, attempt: _Attempt, hosts: Sequence[Host]) -> None:
        for host in hosts:
            if attempt.policy is not None and not self._may_reach(attempt, attempt.policy, host.name):
                continue
            for ip in host.addresses:
                if not attempt.left or attempt.abandoned or attempt.sessions >= MOST_SESSIONS:
                    return
                reached = await self._try_address(attempt, host, ip)
                if reached:
                    break

    async def _try_address(self, attempt: _Attempt, host: Host, ip: str) -> bool:
        """Try one server; return False when it could not be reached, so that its next address is worth
        a try."""
        wanted = self._next_hops.tls(required=attempt.item.email.tls_required)
        for mode in self._tls_modes.choose(host.name, wanted, attempt.policy):
            address = ConnectionKey(host.name, ip, self._next_hops.port(), mode)
            connection = await self._connected(attempt, address)
            if not isinstance(connection, ConnectFailed) or connection.stage is not SmtpStage.TLS:
                break
            self._note_broken_tls(attempt, host.name, mode)
        if isinstance(connection, ConnectFailed):
            self._unreached(attempt, connection, mode)
            return connection.stage is not SmtpStage.CONNECT
        if attempt.policy is not None and mode is TlsMode.VERIFIED and attempt.policy.allows(host.name):
            prometheus.MTA_STS.add(1, (attempt.policy.mode, "kept"))
        attempt.sessions += 1
        await self._offer(attempt, address, connection)
        return True

    async def _connected(
        self, attempt: _Attempt, address: ConnectionKey, *, fresh: bool = False
    ) -> SmtpConnection | ConnectFailed:
        """Return a session; where others wait, a server has `SILENT_SECONDS` to open one."""
        loop = asyncio.get_running_loop()
        timeout, until = asyncio.timeout(None), loop.time() + SILENT_SECONDS

        def hurry() -> None:
            if loop.time() >= until:
                attempt.item.abort_if_silent = None
                timeout.reschedule(loop.time())

        try:
            async with timeout:
                attempt.item.abort_if_silent = hurry
                return await self._connections.get(address, fresh=fresh)
        except TimeoutError:
            if not timeout.expired():
                raise
            return ConnectFailed(address.server_name, address.ip, SmtpStage.CONNECT, SLOW_OPENING)
        finally:
            attempt.item.abort_if_silent = None

    def _note_broken_tls(self, attempt: _Attempt, host: str, mode: TlsMode) -> None:
        """Note that a handshake failed: it must not stop mail that would have gone with less (TLS-01)."""
        if attempt.policy is not None and mode is TlsMode.VERIFIED:
            self._failed_policy(attempt, attempt.policy, host, "no valid certificate")
        self._tls_modes.note_broken(host, mode)

    def _may_reach(self, attempt: _Attempt, policy: Policy, host: str) -> bool:
        """Return whether the policy lets the mail go to this server; under `testing` it only says what
        it thinks."""
        if policy.mode == "none" or policy.allows(host):
            return True
        self._failed_policy(attempt, policy, host, "not listed")
        if policy.mode == "testing":
            return True
        reply = our_reply(
            451, "4.7.5", f"the MTA-STS policy of {attempt.item.destination} does not name {host}"
        )
        self._refused(attempt, host, reply)
        return False

    def _failed_policy(self, attempt: _Attempt, policy: Policy, host: str, result: str) -> None:
        prometheus.MTA_STS.add(1, (policy.mode, result))
        log.warning(
            "delivery.mta_sts",
            destination=attempt.item.destination,
            host=host,
            mode=policy.mode,
            result=result,
        )

    def _refused(self, attempt: _Attempt, host: str, reply: SmtpReply) -> None:
        """Give this reply to the recipients that are left: we do not talk to this server for now."""
        verdict = classify(reply, SmtpStage.TLS)
        for position in attempt.left:
            attempt.said[position] = _RecipientReply(host, SmtpStage.TLS, reply, verdict, tls_missing=True)

    def _unreached(self, attempt: _Attempt, failed: ConnectFailed, mode: TlsMode) -> None:
        if failed.stage is SmtpStage.TLS and (mode is TlsMode.REQUIRED or _is_enforced(attempt)):
            self._refused(attempt, failed.host, _with_policy(attempt, failed.reply))
            return
        if fault := self._next_hops.refusal(failed):
            attempt.held, attempt.signal = fault, SiteSignal.HELD
            return
        verdict = classify(failed.reply, failed.stage)
        if failed.is_ours:
            attempt.signal = SiteSignal.STARVED
        elif failed.stage is SmtpStage.CONNECT:
            attempt.signal = SiteSignal.UNREACHABLE
        elif verdict.slow_down or failed.stage is SmtpStage.BANNER:
            attempt.signal = SiteSignal.CROWDED
        for position in attempt.left:
            attempt.said[position] = _RecipientReply(failed.host, failed.stage, failed.reply, verdict)

    async def _offer(self, attempt: _Attempt, address: ConnectionKey, connection: SmtpConnection) -> None:
        attempt.used.append((address, connection))
        await faults.point("delivery.connected")
        if not await self._may_begin(attempt):
            return
        done = await self._send(attempt, connection)
        if done.stale:
            connection.abort()
            again = await self._connected(attempt, address, fresh=True)
            if isinstance(again, ConnectFailed):
                self._unreached(attempt, again, address.tls)
                return
            connection = again
            attempt.used.append((address, connection))
            if not await self._may_begin(attempt):
                return
            done = await self._send(attempt, connection)
        if not done.abandoned and (fault := self._next_hops.refusal_in(done)):
            attempt.held, attempt.signal = fault, SiteSignal.HELD
            return
        attempt.offered = attempt.offered or done.offered
        attempt.abandoned = done.abandoned
        if not done.abandoned:
            self._note(attempt, connection, done)

    async def _may_begin(self, attempt: _Attempt) -> bool:
        """Make the last check of a copy; where it says no, the connection is still good for other mail."""
        begins = attempt.item.may_start
        attempt.abandoned = begins is not None and not await begins()
        return not attempt.abandoned

    async def _send(self, attempt: _Attempt, connection: SmtpConnection) -> Transaction:
        mailboxes = [target.mailbox for target in attempt.left.values()]
        attempt.item.abort_if_silent = partial(connection.abort_if_silent, SILENT_SECONDS)
        try:
            return await connection.send(
                attempt.mail_from,
                mailboxes,
                attempt.wire,
                before_final_dot=attempt.fence,
                observe=_fault_point if faults.are_armed() else None,
            )
        finally:
            attempt.item.abort_if_silent = None

    def _note(self, attempt: _Attempt, connection: SmtpConnection, done: Transaction) -> None:
        tls = _description(connection.tls)
        # A server that said nothing has not taken the mail without complaint.
        heard = any(not answer.reply.ours for answer in done.answers)
        attempt.signal = SiteSignal.CLEAN if heard else SiteSignal.SILENT
        for position, answer in zip(list(attempt.left), done.answers, strict=True):
            verdict = classify(answer.reply, answer.stage)
            if verdict.slow_down:
                attempt.signal = SiteSignal.SLOW
            uncertain = done.uncertain and verdict.outcome is DeliveryOutcome.DELAYED
            attempt.said[position] = _RecipientReply(
                host=connection.host,
                stage=answer.stage,
                reply=answer.reply,
                verdict=verdict,
                uncertain=uncertain,
                tls=tls,
            )
            if uncertain or not verdict.retry_host:
                del attempt.left[position]
        log.info(
            "delivery.attempt",
            email=attempt.item.email_id,
            grp=attempt.item.grp,
            host=connection.host,
            stage=str(done.stage),
            code=done.answers[0].reply.code,
            tls=tls,
        )


def _description(tls: TlsInfo | None) -> str | None:
    """Return the text that an attempt records of its encryption (TLS-06)."""
    if tls is None:
        return None
    return f"{tls.version} {tls.cipher} {'verified' if tls.verified else 'unverified'}"


def _is_enforced(attempt: _Attempt) -> bool:
    return attempt.policy is not None and attempt.policy.mode == "enforce"


def _with_policy(attempt: _Attempt, reply: SmtpReply) -> SmtpReply:
    """Return the reply with the policy because of which TLS must succeed."""
    if not _is_enforced(attempt):
        return reply
    text = f"{reply.text} (the MTA-STS policy of {attempt.item.destination} asks for it)"
    return our_reply(reply.code, reply.enhanced or "4.7.5", text)


async def _fault_point(stage: SmtpStage) -> None:
    await faults.point(POINTS[stage])


def _result_of(recipient_reply: _RecipientReply) -> tuple[EventKind, EventDetail]:
    verdict = recipient_reply.verdict
    bounce = None
    if verdict.bounce_type is not None:
        bounce = Bounce(str(verdict.bounce_type), str(verdict.sub_type or "General"))
    kind = KINDS[verdict.outcome]
    if recipient_reply.tls_missing:
        kind = EventKind.DELIVERY_DELAYED
    detail = EventDetail(
        host=recipient_reply.host,
        code=recipient_reply.reply.code,
        enhanced=recipient_reply.reply.enhanced,
        reply=str(recipient_reply.reply),
        reason="tls_required" if recipient_reply.tls_missing else verdict.reason,
        bounce=bounce,
        uncertain=recipient_reply.uncertain,
        tls=recipient_reply.tls,
    )
    return kind, detail
