"""Transports of items: the simulator, `capture`, and the choice between them and SMTP
(`smtp/transport.py`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pillarbox.delivery.attempts import Transport
from pillarbox.delivery.composing import LARGE, Composer
from pillarbox.delivery.items import Item, OpenRecipient
from pillarbox.delivery.rate_control import SiteLimits
from pillarbox.delivery.reports import RecipientResult, Report
from pillarbox.delivery.site_scheduler import Site
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.process.byte_budget import ByteBudget
from pillarbox.teams.team import is_demo
from pillarbox.timeline.rules import Bounce, EventDetail, EventKind

LOCAL = SiteLimits(64, 64, is_shared=False)
MOST_CAPTURED = 48 * 1024 * 1024
"""Bytes of large messages that are in memory at once until they are kept; the next one waits its turn."""

UNKNOWN_USER = EventDetail(
    host="simulator",
    code=550,
    enhanced="5.1.1",
    reply="550 5.1.1 The simulator knows no such user.",
    reason="The address does not exist.",
    bounce=Bounce("Permanent", "NoEmail"),
)
TAKEN = EventDetail(
    host="simulator", code=250, enhanced="2.0.0", reply="250 2.0.0 Accepted by the simulator."
)
REPORTED = EventDetail(host="simulator", reason="The recipient reported the mail as spam.")
OF_THE_DEMO = EventDetail(host="simulator", reason="Mail of the demo's team does not leave this machine.")
ON_THE_LIST = EventDetail(suppressed="previous_bounce")


class Simulator:
    """Outcomes of the simulator addresses (emails.md section 7); nothing leaves the machine."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def site(self, destination: str) -> Site:
        return Site("simulator", LOCAL)

    async def send(self, item: Item, fence: Callable[[], bool]) -> Report:
        now = self._clock.now()
        if item.may_start is not None and not await item.may_start():
            return Report(now, now, abandoned=True)
        results = [result for target in item.targets for result in simulated(target)]
        offered = any(result.kind is not EventKind.SUPPRESSED for result in results)
        return Report(now, now, offered, results, host="simulator", keeps_suppression=False)

    async def refuse(self, item: Item, detail: EventDetail) -> Report:
        """Fail all recipients, for this reason."""
        now = self._clock.now()
        if item.may_start is not None and not await item.may_start():
            return Report(now, now, abandoned=True)
        results = [RecipientResult(target.position, EventKind.FAILED, detail) for target in item.targets]
        return Report(now, now, results=results, host="simulator", keeps_suppression=False)

    async def close(self) -> None:
        return


def simulated(target: OpenRecipient) -> Sequence[RecipientResult]:
    """Return the results of mail to one simulator address."""
    local = target.address.rpartition("@")[0]
    word = local.split("+", 1)[0]
    at = target.position
    if local == "suppressed":
        return [RecipientResult(at, EventKind.SUPPRESSED, ON_THE_LIST)]
    if word == "delivered":
        return [RecipientResult(at, EventKind.DELIVERED, TAKEN)]
    if word == "complained":
        return [
            RecipientResult(at, EventKind.DELIVERED, TAKEN),
            RecipientResult(at, EventKind.COMPLAINED, REPORTED),
        ]
    return [RecipientResult(at, EventKind.BOUNCED, UNKNOWN_USER)]


class CaptureTransport:
    """Route `capture`: every recipient is delivered, and the message is kept with the outcome."""

    def __init__(self, clock: Clock, composer: Composer, return_path: Callable[[Item], str]) -> None:
        self._clock = clock
        self._composer = composer
        self._return_path = return_path
        self._budget = ByteBudget(MOST_CAPTURED)

    def site(self, destination: str) -> Site:
        return Site("capture", LOCAL)

    async def send(self, item: Item, fence: Callable[[], bool]) -> Report:
        started = self._clock.now()
        wire = await self._composer.wire(item.email, item.copy)
        if item.may_start is not None and not await item.may_start():
            return Report(started, self._clock.now(), abandoned=True)
        share = self._budget.of(wire.size if wire.size > LARGE else 0)
        await share.take()
        try:
            whole = await wire.whole()
        except BaseException:
            share.give()
            raise
        kept = EventDetail(
            host="capture", code=250, enhanced="2.0.0", reply="250 2.0.0 Kept on this machine."
        )
        return Report(
            started,
            self._clock.now(),
            offered=True,
            results=[RecipientResult(target.position, EventKind.DELIVERED, kept) for target in item.targets],
            host="capture",
            captured=whole,
            mail_from=self._return_path(item),
            on_settled=share.give,
            on_settle_failed=share.give,
        )

    async def close(self) -> None:
        return


class TransportChoice:
    """Chooses the transport by destination. Mail of the demo's team goes nowhere but to the simulator or into
    capture: its contacts and texts are made up, and its domain is nobody's."""

    def __init__(self, simulator_domains: frozenset[str], simulator: Simulator, outside: Transport) -> None:
        self._domains = simulator_domains
        self._simulator = simulator
        self._outside = outside

    def site(self, destination: str) -> Site:
        return self._transport_for(destination).site(destination)

    async def send(self, item: Item, fence: Callable[[], bool]) -> Report:
        if is_demo(item.team_id) and self._leaves_the_machine(item.destination):
            return await self._simulator.refuse(item, OF_THE_DEMO)
        report = await self._transport_for(item.destination).send(item, fence)
        if item.destination in self._domains and isinstance(self._outside, CaptureTransport):
            kept = await self._outside.send(item, fence)
            report.captured, report.mail_from = kept.captured, kept.mail_from
            report.on_settled, report.on_settle_failed = kept.on_settled, kept.on_settle_failed
        return report

    async def close(self) -> None:
        await self._simulator.close()
        await self._outside.close()

    def _leaves_the_machine(self, destination: str) -> bool:
        return destination not in self._domains and not isinstance(self._outside, CaptureTransport)

    def _transport_for(self, destination: str) -> Transport:
        return self._simulator if destination in self._domains else self._outside
