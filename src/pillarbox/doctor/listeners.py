"""Can mail and requests come in? The listeners of the server, and the return path for bounces."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final

from pillarbox.doctor.checks import ROUTE_UNKNOWN, Check, Level
from pillarbox.doctor.outside import SMTP_PORT, ConnectReport, ConnectStage, OutsideWorld, is_address
from pillarbox.kernel.settings.kinds import HostPort, RouteKind

NAME: Final = "listener"
EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - read, not bound
GREETS: Final = ("smtp", "submission", "lmtp")
"""Listeners that greet first; the second and third of a kind have a number behind the name."""

OUTCOMES: Final = {
    ConnectStage.REFUSED: "nothing listens there",
    ConnectStage.TIMEOUT: "it does not answer",
    ConnectStage.NO_ROUTE: "there is no way to it",
    ConnectStage.FORBIDDEN: "a firewall forbids it",
}


def outcome(contact: ConnectReport) -> str:
    """Return the outcome of an attempt, as the end of a sentence."""
    return contact.line or OUTCOMES.get(contact.reached, "it is open")


async def listening(
    outside: OutsideWorld, listeners: Mapping[str, HostPort], *, running: bool
) -> list[Check]:
    """Check whether each listener that should be open accepts connections. Where no server runs, connect to
    nothing and return one check that was skipped."""
    if not running:
        found = "no server runs on this data folder"
        return [
            Check(
                NAME, Level.SKIPPED, "The server's ports are open", found, step="Start it: `pillarbox serve`."
            )
        ]
    return [await _listener(outside, name, at) for name, at in listeners.items()]


async def _listener(outside: OutsideWorld, name: str, host_port: HostPort) -> Check:
    title, expected = f"The {name} port is open", f"{host_port} answers"
    addresses = await outside.addresses(EVERYWHERE.get(host_port.host, host_port.host))
    contact = ConnectReport(ConnectStage.NO_ROUTE)
    for address in addresses:
        contact = await outside.connect(address, host_port.port, name.partition("-")[0] in GREETS)
        if contact.connected:
            return Check(
                name=f"{NAME}.{name}",
                level=Level.OK,
                title=title,
                found=f"{host_port}: {outcome(contact)}",
                expected=expected,
            )
    return Check(
        name=f"{NAME}.{name}",
        level=Level.PROBLEM,
        title=title,
        found=f"{host_port}: {outcome(contact)}",
        expected=expected,
        step="Look into the log of the server.",
    )


async def return_path_check(
    outside: OutsideWorld,
    hostname: str,
    route: RouteKind | None,
    host_port: HostPort | None,
    *,
    receives: bool,
) -> Check:
    """Check whether mail servers reach us: bounces come to the return path, and mail to domains that receive.
    The route is None where it is not known.

    Bounces that come later are lost where nobody answers; what a server says at once is not.
    """
    name, title = "return_path", "Bounces and mail find their way to this machine"
    expected = f"{hostname} greets on port {SMTP_PORT}"
    if route is None and not receives:
        return Check(name=name, level=Level.SKIPPED, title=title, found=ROUTE_UNKNOWN, expected=expected)
    if route is RouteKind.CAPTURE and not receives:
        return Check(
            name=name,
            level=Level.SKIPPED,
            title=title,
            found="the route is `capture`: nothing comes back",
            expected=expected,
        )
    trouble = Level.PROBLEM if receives and route is not RouteKind.CAPTURE else Level.WARNING
    contact = ConnectReport(ConnectStage.NO_ROUTE)
    addresses = await outside.addresses(hostname)
    if not addresses:
        found = await outside.why_no_address(hostname)
        step = f"Publish an A record of {hostname}, or give the server its name in DNS with `--hostname`."
        return Check(name=name, level=trouble, title=title, found=found, expected=expected, step=step)
    for address in addresses:
        contact = await outside.connect(address, SMTP_PORT, True)
        if contact.line.startswith("220"):
            return Check(name=name, level=Level.OK, title=title, found=contact.line, expected=expected)
    return Check(
        name=name,
        level=trouble,
        title=title,
        found=f"{hostname} port {SMTP_PORT}: {outcome(contact)}",
        expected=expected,
        step=_step(host_port),
    )


def _step(address: HostPort | None) -> str:
    if address is None:
        return "Open the SMTP port: `--smtp 0.0.0.0:25`."
    if is_address(address.host) and ip_address(address.host).is_loopback:
        return f"The SMTP port {address} is for this machine alone: use `--smtp 0.0.0.0:25`."
    if address.port != SMTP_PORT:
        better = HostPort(address.host, SMTP_PORT)
        return f"Other servers come to port 25: use `--smtp {better}`, or forward 25 to {address.port}."
    return "Let port 25 in through the firewall of this machine and of its network."
