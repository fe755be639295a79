"""What people bring to the program: logging in. The pages are drawn by the dashboard."""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox.kernel.ids import Ids
from pillarbox.kernel.security.rate_limit import Windows
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.slices import Background, Kit, Slice, Stop
from pillarbox.people.logins import Logins
from pillarbox.people.passkeys import Passkeys, RelyingParty
from pillarbox.people.passwords import Passwords
from pillarbox.people.second_factor import SEEDS, SecondFactor


def _passwords(kit: Kit) -> Passwords:
    return Passwords(kit.runtime.shared_memory, kit.clock)


def _logins(kit: Kit) -> Logins:
    return Logins(kit.pool, kit.need(Ids), kit.need(Windows), kit.need(Passwords))


def _background(kit: Kit) -> Sequence[Background]:
    passwords = kit.need(Passwords)

    async def close(_: float) -> None:
        passwords.close()

    return [Background(stop=(Stop.THREADS, close))]


SLICE = Slice(
    name="people",
    provides={
        Passwords: _passwords,
        Logins: _logins,
        SecondFactor: lambda kit: SecondFactor(kit.need(KeyRing)),
        Passkeys: lambda kit: Passkeys(RelyingParty.of_url(kit.settings.public_url)),
    },
    background=_background,
    sealed=[SEEDS],
)
