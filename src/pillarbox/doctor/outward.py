"""Can mail leave? Port 25 outwards with the cause named, or the smarthost."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from pillarbox.delivery.smtp.relay_faults import RelayFault
from pillarbox.doctor.checks import ROUTE_UNKNOWN, Check, Level
from pillarbox.doctor.outside import CONTROL_PORT, ConnectReport, ConnectStage, OutsideWorld
from pillarbox.kernel.network.dns_answers import AnswerKind
from pillarbox.kernel.settings.kinds import DeliveryRoute, Relay, RouteKind

NAME: Final = "outgoing"
TITLE: Final = "Mail servers can be reached"
EXPECTED: Final = "a greeting (220) from port {port} of well-known mail servers"
MOST_ADDRESSES: Final = 2

USE_SMARTHOST: Final = "use a smarthost meanwhile: `--route relay:smtp://user:password@host:587`"


class UnreachableCause(NamedTuple):
    """Why nothing gets out, and what to do."""

    found: str
    step: str


CAUSES: Final = {
    "no_dns": UnreachableCause(
        "DNS does not answer, so no mail server can be found",
        "Check the DNS servers of this machine (/etc/resolv.conf), or name others with `--dns`.",
    ),
    "no_names": UnreachableCause(
        "DNS says that the domains of well-known mail servers do not exist, or have none: {line}",
        "The DNS servers of this machine do not know the internet: check /etc/resolv.conf, or name others "
        "with `--dns`.",
    ),
    "no_route": UnreachableCause(
        "this machine has no route to the internet",
        "Check its network and default route.",
    ),
    "filtered": UnreachableCause(
        "no connection gets out at all: packets are dropped silently",
        "Check the firewall of this machine and of its network.",
    ),
    "blocked": UnreachableCause(
        "other ports get out, port {port} does not: packets to it are dropped silently, as hosting "
        "providers and access networks do",
        f"Ask the provider of this machine to open outgoing port 25; {USE_SMARTHOST}.",
    ),
    "refused": UnreachableCause(
        "other ports get out, port {port} is refused at once: a firewall on the way forbids it",
        f"Allow outgoing port 25 in the firewall of this machine and of its network; {USE_SMARTHOST}.",
    ),
    "rejected": UnreachableCause(
        "mail servers answer and send this machine away: {line}",
        "The address of this machine has a bad name, or none: check its PTR record and the block lists; "
        f"{USE_SMARTHOST}.",
    ),
    "silent": UnreachableCause(
        "connections to port {port} open, but no mail server speaks: something on the way answers for them",
        f"Ask the provider of this machine whether outgoing port 25 is intercepted; {USE_SMARTHOST}.",
    ),
}


class TriedServer(NamedTuple):
    """One mail server of a well-known domain."""

    domain: str
    host: str
    contact: ConnectReport

    @property
    def accepted(self) -> bool:
        return self.contact.reached is ConnectStage.BANNER and self.contact.line.startswith("220")


class EffectiveRoute(NamedTuple):
    """Where the mail of an installation leaves: None where it is not known, `is_elsewhere` where only other
    machines deliver."""

    route: DeliveryRoute | None
    is_elsewhere: bool = False


async def outgoing(outside: OutsideWorld, used: EffectiveRoute, port: int, domains: Sequence[str]) -> Check:
    """Return the check that fits the route."""
    route = used.route
    if route is None:
        step = "Start the server, or set PILLARBOX_ROUTE to its route for this command."
        return Check(NAME, Level.SKIPPED, TITLE, ROUTE_UNKNOWN, step=step)
    if route.kind is RouteKind.CAPTURE:
        found = "the route is `capture`: mail is kept here and nothing leaves the machine"
        return Check(NAME, Level.SKIPPED, TITLE, found, step="To deliver, start the server with `--route`.")
    if used.is_elsewhere:
        found = f"another machine delivers, by the route `{route.public}`"
        return Check(
            NAME, Level.SKIPPED, TITLE, found, step="Run `pillarbox doctor` on the machine that delivers."
        )
    if route.relay is not None:
        return await smarthost(outside, route.relay)
    tried = await asyncio.gather(*(greeted(outside, domain, port) for domain in domains))
    reached = [one for one in tried if isinstance(one, TriedServer)]
    denied = next((one for one in tried if isinstance(one, str)), None)
    if denied is not None and not reached:
        return _problem("no_names", port, denied)
    return await judged(outside, reached, port, domains)


async def greeted(outside: OutsideWorld, domain: str, port: int) -> TriedServer | str | None:
    """Return the best mail server of the domain and its answer; the domain where DNS says that it has none;
    None where DNS does not answer."""
    seen = await outside.look_up(domain, "MX")
    if seen.kind is AnswerKind.TROUBLE:
        return None
    if seen.kind is not AnswerKind.VALUES:
        return domain
    preferred = sorted((int(preference), host) for preference, host in map(str.split, seen.values))
    host = preferred[0][1]
    contact = None
    for address in (await outside.addresses(host))[:MOST_ADDRESSES]:
        contact = await outside.connect(address, port, True)
        if contact.connected:
            break
    return None if contact is None else TriedServer(domain, host, contact)


async def judged(
    outside: OutsideWorld, tried: Sequence[TriedServer], port: int, domains: Sequence[str]
) -> Check:
    expected = EXPECTED.format(port=port)
    good = [one for one in tried if one.accepted]
    if good:
        found = f"{good[0].host} says {good[0].contact.line}"
        if len(good) == len(domains):
            return Check(name=NAME, level=Level.OK, title=TITLE, found=found, expected=expected)
        bad = ", ".join(domain for domain in domains if domain not in {one.domain for one in good})
        return Check(
            name=NAME,
            level=Level.WARNING,
            title=TITLE,
            found=f"{found}; not reached: {bad}",
            expected=expected,
            step="Try again later.",
        )
    cause, line = await _cause(outside, tried, domains), _line(tried)
    return _problem(cause, port, line)


def _problem(cause: str, port: int, line: str) -> Check:
    explanation = CAUSES[cause]
    found = explanation.found.format(port=port, line=line)
    return Check(
        name=f"{NAME}.{cause}",
        level=Level.PROBLEM,
        title=TITLE,
        found=found,
        expected=EXPECTED.format(port=port),
        step=explanation.step,
    )


async def _cause(outside: OutsideWorld, tried: Sequence[TriedServer], domains: Sequence[str]) -> str:
    """Return why none of the servers greeted us, as a key of `CAUSES`."""
    if not tried:
        return "no_dns"
    most = Counter(one.contact.reached for one in tried).most_common(1)[0][0]
    if any(one.contact.reached is ConnectStage.BANNER for one in tried):
        return "rejected"
    if most is ConnectStage.SILENT:
        return "silent"
    if most is ConnectStage.NO_ROUTE:
        return "no_route"
    if not await _gets_out(outside, domains):
        return "filtered" if most is ConnectStage.TIMEOUT else "no_route"
    return "blocked" if most is ConnectStage.TIMEOUT else "refused"


async def _gets_out(outside: OutsideWorld, domains: Sequence[str]) -> bool:
    """Return whether anything but mail gets out."""
    for domain in domains:
        for address in (await outside.addresses(domain))[:MOST_ADDRESSES]:
            if (await outside.connect(address, CONTROL_PORT, False)).connected:
                return True
    return False


def _line(tried: Sequence[TriedServer]) -> str:
    return next((one.contact.line for one in tried if one.contact.reached is ConnectStage.BANNER), "")


async def smarthost(outside: OutsideWorld, relay: Relay) -> Check:
    """Check whether the smarthost answers, and lets us in with our password; nothing is sent."""
    title, expected = "The smarthost takes our mail", f"a session with {relay.host} port {relay.port}"
    addresses = await outside.addresses(relay.host)
    if not addresses:
        found, step = await outside.why_no_address(relay.host), "Check the host name in `--route`."
        return Check(
            name=f"{NAME}.no_dns", level=Level.PROBLEM, title=title, found=found, expected=expected, step=step
        )
    contact = ConnectReport(ConnectStage.TIMEOUT)
    for address in addresses[:MOST_ADDRESSES]:
        contact = await outside.connect(address, relay.port, not relay.smtps)
        if contact.connected:
            break
    if contact.line.startswith("220") or (relay.smtps and contact.connected):
        return await _session(
            outside,
            relay,
            Check(name=NAME, level=Level.OK, title=title, found=contact.line or "ok", expected=expected),
        )
    found, step = RELAY_TROUBLE[contact.reached]
    return Check(
        name=f"{NAME}.{contact.reached.value}",
        level=Level.PROBLEM,
        title=title,
        found=found.format(host=relay.host, port=relay.port, line=contact.line),
        expected=expected,
        step=step,
    )


async def _session(outside: OutsideWorld, relay: Relay, fine: Check) -> Check:
    """Return the check of a smarthost that can be reached."""
    failed = await outside.open_session(relay)
    if failed is None:
        return fine
    if isinstance(failed, RelayFault):
        name, found, step = failed.name, failed.found.removesuffix("."), failed.step
    else:
        name, found = str(failed.stage), f"no session could be opened: {failed.reply}"
        step = "Try again later; if it stays so, ask who runs the smarthost."
    return Check(
        name=f"{NAME}.{name}",
        level=Level.PROBLEM,
        title=fine.title,
        found=found,
        expected=fine.expected,
        step=step,
    )


RELAY_TROUBLE: Final = {
    ConnectStage.BANNER: (
        "{host} sends this machine away: {line}",
        "Ask who runs it to let this machine in.",
    ),
    ConnectStage.SILENT: (
        "{host} port {port} is open, but {line}",
        "Check the port in `--route`; with implicit TLS (port 465) it is `relay:smtps://…`.",
    ),
    ConnectStage.REFUSED: ("{host} refuses port {port}", "Check host and port in `--route`."),
    ConnectStage.TIMEOUT: (
        "{host} port {port} does not answer",
        "Check host and port in `--route`, and the firewalls on the way.",
    ),
    ConnectStage.NO_ROUTE: ("there is no route to {host}", "Check the network of this machine."),
    ConnectStage.FORBIDDEN: (
        "a firewall on the way forbids {host} port {port}",
        "Allow it in the firewall of this machine and of its network.",
    ),
}
