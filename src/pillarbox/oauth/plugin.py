"""What OAuth brings to the program."""

from __future__ import annotations

from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.security.authentication import AccessTokens
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.slices import Kit, Slice
from pillarbox.oauth.bearer import routes as grant_routes
from pillarbox.oauth.bearer.tokens import BearerTokens, GrantsLastUsed
from pillarbox.oauth.key_queries import OAUTH_KEYS
from pillarbox.oauth.keys import SigningKeys


def _signing_keys(kit: Kit) -> SigningKeys:
    return SigningKeys(kit.pool, kit.clock, kit.need(KeyRing))


def _bearer_tokens(kit: Kit) -> BearerTokens:
    issuer = kit.settings.public_url
    return BearerTokens(kit.pool, kit.clock, kit.need(SigningKeys), issuer, kit.need(GrantsLastUsed))


SLICE = Slice(
    name="oauth",
    provides={
        SigningKeys: _signing_keys,
        GrantsLastUsed: lambda kit: GrantsLastUsed(kit.pool, kit.clock),
        BearerTokens: _bearer_tokens,
        AccessTokens: lambda kit: kit.need(BearerTokens),
    },
    routes=collect(grant_routes),
    loops=lambda kit: [kit.need(GrantsLastUsed).run()],
    periodic=lambda kit: kit.need(SigningKeys).periodic(),
    sealed=[OAUTH_KEYS],
)
