"""The HELO name of this machine, and whether its A and PTR records agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pillarbox.doctor.checks import Check, Level
from pillarbox.doctor.outside import OutsideWorld, absence, is_address
from pillarbox.kernel.network.dns_answers import AnswerKind
from pillarbox.kernel.settings.kinds import RouteKind

HELO: Final = "helo"
HELO_TITLE: Final = "The host name is one of the internet"
PTR: Final = "ptr"
PTR_TITLE: Final = "The address points back to the name"


async def naming(outside: OutsideWorld, hostname: str, route: RouteKind | None) -> list[Check]:
    """Check the HELO name and its PTR. Only who delivers directly is judged by them. The route may be
    unknown: None."""
    trouble = Level.PROBLEM if route is RouteKind.DIRECT else Level.WARNING
    if "." not in hostname or is_address(hostname):
        return [
            Check(
                name=f"{HELO}.no_domain",
                level=trouble if route is not RouteKind.CAPTURE else Level.SKIPPED,
                title=HELO_TITLE,
                found=f"the host name is {hostname}",
                expected="a name such as mail.example.com",
                step="Give this machine a name in a domain of yours, and say so with `--hostname`.",
            )
        ]
    seen = await outside.look_up(hostname, "ADDRESSES")
    if seen.kind is AnswerKind.TROUBLE:
        return [
            Check(
                name=f"{HELO}.unknown",
                level=Level.WARNING,
                title=HELO_TITLE,
                found=f"DNS does not say what the address of {hostname} is: {seen.detail}",
                expected="an address of this machine",
                step="Try again later.",
            )
        ]
    addresses = seen.values
    if not addresses:
        return [
            Check(
                name=f"{HELO}.no_address",
                level=trouble,
                title=HELO_TITLE,
                found=absence(hostname, seen),
                expected="an A record (and AAAA, where the machine has IPv6) with the address of this "
                "machine",
                step=f"Publish it: {hostname} A <public address of this machine>.",
            )
        ]
    return [
        _helo(outside, hostname, addresses),
        *[await _pointer(outside, hostname, a, trouble) for a in addresses],
    ]


def _helo(outside: OutsideWorld, hostname: str, addresses: Sequence[str]) -> Check:
    found = f"{hostname} is {', '.join(addresses)}"
    if any(outside.is_ours(address) for address in addresses):
        return Check(
            name=HELO, level=Level.OK, title=HELO_TITLE, found=found, expected="an address of this machine"
        )
    return Check(
        name=f"{HELO}.elsewhere",
        level=Level.WARNING,
        title=HELO_TITLE,
        found=f"{found}, which no network card of this machine has",
        expected="an address of this machine",
        step="Right where addresses are translated on the way (NAT); otherwise correct the record.",
    )


async def _pointer(outside: OutsideWorld, hostname: str, address: str, trouble: Level) -> Check:
    """Check that the address is forward-confirmed: the name of the address has that address (RFC
    1912, 2.1)."""
    expected = f"{address} has the name {hostname}"
    seen = await outside.pointers(address)
    if seen.kind is AnswerKind.TROUBLE:
        found = f"DNS does not say what the name of {address} is: {seen.detail}"
        return Check(
            name=f"{PTR}.unknown",
            level=Level.WARNING,
            title=PTR_TITLE,
            found=found,
            expected=expected,
            step="Try again later.",
        )
    if hostname in seen.values:
        return Check(
            name=PTR, level=Level.OK, title=PTR_TITLE, found=f"{address} is {hostname}", expected=expected
        )
    step = f"Ask the provider of this machine to set the PTR record of {address} to {hostname}."
    if not seen.values:
        return Check(
            name=f"{PTR}.absent",
            level=trouble,
            title=PTR_TITLE,
            found=f"{address} has no name",
            expected=expected,
            step=step,
        )
    names = ", ".join(seen.values)
    for name in seen.values:
        if address in await outside.addresses(name):
            found = f"{address} is {names}: that agrees both ways, but it is not the name we greet with"
            return Check(
                name=f"{PTR}.other",
                level=Level.WARNING,
                title=PTR_TITLE,
                found=found,
                expected=expected,
                step=step,
            )
    found = f"{address} is {names}, which does not have that address"
    return Check(
        name=f"{PTR}.unconfirmed", level=trouble, title=PTR_TITLE, found=found, expected=expected, step=step
    )
