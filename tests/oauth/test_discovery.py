"""What programs find out first (RFC 8414, RFC 9728, RFC 7517; oauth.md 2)."""

from __future__ import annotations

from pathlib import Path

from kit.manual_world import manual_world
from pillarbox.oauth.keys import SigningKeys

ISSUER = "https://mail.harbor.example"


async def test_the_documents_say_what_is_there(database_url: str, tmp_path: Path) -> None:
    """OA-08."""
    async with manual_world(database_url, tmp_path, public_url=ISSUER) as pillarbox:
        client = pillarbox.client(None)
        server = await client.get("/.well-known/oauth-authorization-server")
        methods = ["none", "client_secret_basic", "client_secret_post"]
        expected = {
            "issuer": ISSUER,
            "authorization_endpoint": f"{ISSUER}/oauth/authorize",
            "token_endpoint": f"{ISSUER}/oauth/token",
            "jwks_uri": f"{ISSUER}/.well-known/jwks.json",
            "registration_endpoint": f"{ISSUER}/oauth/register",
            "revocation_endpoint": f"{ISSUER}/oauth/revoke",
            "scopes_supported": ["full_access", "emails:send"],
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": methods,
            "code_challenge_methods_supported": ["S256"],
            "revocation_endpoint_auth_methods_supported": methods,
            "client_id_metadata_document_supported": True,
            "authorization_response_iss_parameter_supported": True,
        }
        assert list(server.json().items()) == list(expected.items())
        resource = await client.get("/.well-known/oauth-protected-resource")
        assert list(resource.json().items()) == [
            ("resource", ISSUER),
            ("authorization_servers", [ISSUER]),
            ("bearer_methods_supported", ["header"]),
            ("scopes_supported", ["full_access", "emails:send"]),
        ]
        keys = await client.get("/.well-known/jwks.json")
        [key] = keys.json()["keys"]
        assert list(key) == ["kty", "crv", "x", "y", "use", "alg", "kid"]
        assert (key["kty"], key["crv"], key["use"], key["alg"]) == ("EC", "P-256", "sig", "ES256")
        assert len(key["x"]) == len(key["y"]) == 43
        for answer in (server, resource, keys):
            assert answer.headers["content-type"] == "application/json"
            assert answer.headers["cache-control"] == "public, max-age=300"
            assert answer.headers["access-control-allow-origin"] == "*"
        await pillarbox.app.need(SigningKeys).add()
        assert len((await client.get("/.well-known/jwks.json")).json()["keys"]) == 2
        assert (await client.head("/.well-known/jwks.json")).status_code == 200
        refused = await client.post("/.well-known/jwks.json")
        assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")


async def test_documents_of_programs_may_be_switched_off(database_url: str, tmp_path: Path) -> None:
    async with manual_world(database_url, tmp_path, oauth_cimd_enabled="false") as pillarbox:
        server = await pillarbox.client(None).get("/.well-known/oauth-authorization-server")
        assert server.json()["client_id_metadata_document_supported"] is False
