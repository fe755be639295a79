"""Does the host of a domain's tracked links answer, with a certificate that programs of mail and browsers
accept? Its record in DNS is looked at elsewhere; a link that leads to an error is a link that is lost."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from pillarbox.doctor.checks import Check, Level
from pillarbox.doctor.outside import OutsideWorld

NAME: Final = "tracking_host"
MOST_ADDRESSES: Final = 4

CERTIFICATE: Final = "Let the proxy before Pillarbox show a valid certificate for {host}, and its chain."
AWAY: Final = "Let {host} port {port} lead to Pillarbox: check its address, the proxy and the firewall."


async def tracking_host_check(outside: OutsideWorld, host: str, public_url: str) -> Check:
    """Every address is tried: a recipient may be led to any of them."""
    public = urlsplit(public_url)
    is_tls = public.scheme == "https"
    port = public.port or (443 if is_tls else 80)
    title = f"{host}: tracked links open"
    expected = f"port {port} answers" + (" with a valid certificate" if is_tls else "")
    addresses = (await outside.addresses(host))[:MOST_ADDRESSES]
    if not addresses:
        return Check(
            f"{NAME}.no_dns",
            Level.PROBLEM,
            title,
            await outside.why_no_address(host),
            expected,
            AWAY.format(host=host, port=port),
        )
    for address in addresses:
        if not (await outside.connect(address, port, False)).connected:
            found, step = f"{address} port {port} does not answer", AWAY.format(host=host, port=port)
            return Check(f"{NAME}.away", Level.PROBLEM, title, found, expected, step)
        fault = await outside.handshake(address, port, host) if is_tls else None
        if fault is not None:
            found, step = f"{address} port {port}: {fault}", CERTIFICATE.format(host=host)
            return Check(f"{NAME}.certificate", Level.PROBLEM, title, found, expected, step)
    return Check(NAME, Level.OK, title, f"{', '.join(addresses)}: answers", expected)
