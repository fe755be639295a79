"""What people bring to the program."""

from __future__ import annotations

from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.slices import Slice
from pillarbox.people.passkeys import Passkeys, RelyingParty
from pillarbox.people.second_factor import SEEDS, SecondFactor

SLICE = Slice(
    name="people",
    provides={
        SecondFactor: lambda kit: SecondFactor(kit.need(KeyRing)),
        Passkeys: lambda kit: Passkeys(RelyingParty.of_url(kit.settings.public_url)),
    },
    sealed=[SEEDS],
)
