"""The slice of OAuth."""

from __future__ import annotations

from datetime import timedelta

from pillarbox.kernel.http.request import Html
from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.network.outbound import Outbound
from pillarbox.kernel.security.authentication import AccessTokens
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.security.shared_limits import SharedLimits
from pillarbox.kernel.slices import Container, Retention, RetentionItem, Slice
from pillarbox.oauth import routes
from pillarbox.oauth.authorization import Authorization
from pillarbox.oauth.bearer import routes as grant_routes
from pillarbox.oauth.bearer.tokens import BearerTokens, GrantsLastUsed
from pillarbox.oauth.clients.documents import DocumentPolicy, Documents
from pillarbox.oauth.collectors import KEPT, UNUSED_KEPT, OAuthCollector
from pillarbox.oauth.consent import Consent
from pillarbox.oauth.invariants import INVARIANTS
from pillarbox.oauth.key_queries import OAUTH_KEYS
from pillarbox.oauth.keys import SigningKeys
from pillarbox.oauth.settings import (
    OAUTH_CIMD_ENABLED,
    OAUTH_CIMD_HOSTS,
    OAUTH_CIMD_REFUSED_HOSTS,
    OAUTH_REFRESH_REUSE_GRACE_SECONDS,
)
from pillarbox.oauth.tokens import Tokens


def _signing_keys(kit: Container) -> SigningKeys:
    return SigningKeys(kit.pool, kit.clock, kit.need(KeyRing))


def _bearer_tokens(kit: Container) -> BearerTokens:
    issuer = kit.settings.public_url
    return BearerTokens(kit.pool, kit.clock, kit.need(SigningKeys), issuer, kit.need(GrantsLastUsed))


def _documents(kit: Container) -> Documents:
    settings = kit.settings
    policy = DocumentPolicy(
        settings[OAUTH_CIMD_ENABLED],
        frozenset(settings[OAUTH_CIMD_HOSTS]),
        frozenset(settings[OAUTH_CIMD_REFUSED_HOSTS]),
        kit.externals.https_port,
    )
    return Documents(kit.pool, kit.need(Outbound), kit.need(SharedLimits), policy)


def _authorization(kit: Container) -> Authorization:
    return Authorization(kit.pool, kit.need(Documents), kit.need(SharedLimits), kit.settings.public_url)


def _tokens(kit: Container) -> Tokens:
    grace = timedelta(seconds=kit.settings[OAUTH_REFRESH_REUSE_GRACE_SECONDS])
    forget = kit.need(BearerTokens).forget
    return Tokens(kit.pool, kit.need(SigningKeys), kit.settings.public_url, grace, forget)


SLICE = Slice(
    name="oauth",
    provides={
        Documents: _documents,
        Authorization: _authorization,
        Consent: lambda kit: Consent(kit.pool, kit.need(Authorization)),
        Tokens: _tokens,
        SigningKeys: _signing_keys,
        GrantsLastUsed: lambda kit: GrantsLastUsed(kit.pool, kit.clock),
        BearerTokens: _bearer_tokens,
        AccessTokens: lambda kit: kit.need(BearerTokens),
    },
    routes=[entry for entry in (*collect(routes), *collect(grant_routes)) if entry.reply is not Html],
    pages=[entry for entry in collect(routes) if entry.reply is Html],
    loops=lambda kit: [kit.need(GrantsLastUsed).run()],
    periodic=lambda kit: kit.need(SigningKeys).periodic(),
    retention=[
        Retention(
            [
                RetentionItem("requests of programs that wait for somebody, after their end", KEPT),
                RetentionItem(
                    "codes that were not used, and documents and logos of programs, after their end", KEPT
                ),
                RetentionItem("programs that nobody ever let act", UNUSED_KEPT),
            ],
            lambda kit: OAuthCollector(kit.pool, kit.clock).periodic(),
        )
    ],
    sealed=[OAUTH_KEYS],
    invariants=INVARIANTS,
)
