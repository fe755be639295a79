"""The slice of API keys: who may call, and the routes under `/api-keys`."""

from __future__ import annotations

from pillarbox.api_keys import routes
from pillarbox.api_keys.credentials import KeyCredentials, LastUsed
from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.security.authentication import CredentialLookup
from pillarbox.kernel.slices import Container, Slice


def _key_credentials(kit: Container) -> KeyCredentials:
    return KeyCredentials(kit.pool, kit.clock, kit.need(LastUsed))


SLICE = Slice(
    name="api_keys",
    provides={
        LastUsed: lambda kit: LastUsed(kit.pool, kit.clock),
        KeyCredentials: _key_credentials,
        CredentialLookup: lambda kit: kit.need(KeyCredentials),
    },
    routes=collect(routes),
    loops=lambda kit: [kit.need(LastUsed).run()],
)
