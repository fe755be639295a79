"""What OAuth brings to the program."""

from __future__ import annotations

from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.slices import Kit, Slice
from pillarbox.oauth.key_queries import OAUTH_KEYS
from pillarbox.oauth.keys import SigningKeys


def _signing_keys(kit: Kit) -> SigningKeys:
    return SigningKeys(kit.pool, kit.clock, kit.need(KeyRing))


SLICE = Slice(
    name="oauth",
    provides={SigningKeys: _signing_keys},
    periodic=lambda kit: kit.need(SigningKeys).periodic(),
    sealed=[OAUTH_KEYS],
)
