"""What people bring to the program: logging in. The pages are drawn by the dashboard."""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox.kernel.ids import Ids
from pillarbox.kernel.security.rate_limit import Windows
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.slices import Background, Kit, Slice, Stop
from pillarbox.people.factor_logins import FactorLogins
from pillarbox.people.logins import Logins
from pillarbox.people.own_account import OwnAccount
from pillarbox.people.passkeys import Passkeys, RelyingParty
from pillarbox.people.passwords import Passwords
from pillarbox.people.second_factor import SEEDS, SecondFactor


def _passwords(kit: Kit) -> Passwords:
    return Passwords(kit.runtime.shared_memory, kit.clock)


def _logins(kit: Kit) -> Logins:
    return Logins(kit.pool, kit.need(Ids), kit.need(Windows), kit.need(Passwords))


def _factor_logins(kit: Kit) -> FactorLogins:
    needs = kit.need(Ids), kit.need(Windows), kit.need(SecondFactor), kit.need(Passkeys)
    return FactorLogins(kit.pool, *needs)


def _own_account(kit: Kit) -> OwnAccount:
    return OwnAccount(kit.pool, kit.need(Passwords), kit.need(SecondFactor), kit.need(Passkeys))


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
        FactorLogins: _factor_logins,
        OwnAccount: _own_account,
        SecondFactor: lambda kit: SecondFactor(kit.need(KeyRing)),
        Passkeys: lambda kit: Passkeys(RelyingParty.of_url(kit.settings.public_url)),
    },
    background=_background,
    sealed=[SEEDS],
)
