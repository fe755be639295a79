"""Access tokens and the keys that sign them (oauth.md 2 and 6; RFC 9068, RFC 7515)."""

from __future__ import annotations

import asyncio
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OctKey, RSAKey

from kit.clock import ManualClock
from pillarbox.kernel.postgres.database import open_pool
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.oauth.access_tokens import LIFETIME, AccessToken, issue, verify
from pillarbox.oauth.key_queries import OAUTH_KEYS
from pillarbox.oauth.keys import (
    REMOVED_AFTER,
    ROTATED_AFTER,
    SIGNS_AFTER,
    STAYS,
    SigningKeys,
    public_key,
    verifier_of,
)

ISSUER = "https://mail.harbor.example"
RING = KeyRing.parse(KeyRing.generate_text())


@asynccontextmanager
async def signing(
    url: str, clock: ManualClock, ring: KeyRing = RING
) -> AsyncIterator[tuple[SigningKeys, asyncpg.Pool]]:
    pool = await open_pool(url, limit=4)
    try:
        yield SigningKeys(pool, clock, ring), pool
    finally:
        await pool.close()


async def token(keys: SigningKeys, clock: ManualClock, **fields: Any) -> str:
    given = {
        "issuer": ISSUER,
        "person_id": UUID(int=1),
        "client_id": "quill",
        "scopes": ("emails:send",),
        "team_id": UUID(int=2),
        "grant_id": UUID(int=3),
    }
    return await issue(keys, clock.now(), **{**given, **fields})


async def read(keys: SigningKeys, clock: ManualClock, text: str) -> AccessToken | None:
    return await verify(keys, text, clock.now(), issuer=ISSUER)


def part(value: Any) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def opened(text: str) -> Any:
    return json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))


async def test_an_independent_library_reads_a_token_with_the_published_keys(database_url: str) -> None:
    clock = ManualClock()
    async with signing(database_url, clock) as (keys, _):
        made = await token(keys, clock)
        known = KeySet.import_key_set({"keys": json.loads(json.dumps(await keys.published()))})
        found = jwt.decode(made, known, algorithms=["ES256"])
        assert found.header == {"alg": "ES256", "typ": "at+jwt", "kid": (await keys.published())[0]["kid"]}
        issued = int(clock.now().timestamp())
        jti = found.claims.pop("jti")
        assert len(jti) == 22
        assert found.claims == {
            "iss": ISSUER,
            "aud": ISSUER,
            "sub": str(UUID(int=1)),
            "client_id": "quill",
            "scope": "emails:send",
            "iat": issued,
            "exp": issued + 900,
            "team_id": str(UUID(int=2)),
            "grant_id": str(UUID(int=3)),
        }
        assert len(urlsafe_b64decode(made.split(".")[2] + "==")) == 64


async def test_a_token_is_good_for_900_seconds_and_not_one_more(database_url: str) -> None:
    clock = ManualClock()
    async with signing(database_url, clock) as (keys, _):
        made = await token(keys, clock)
        clock.advance(899.9)
        found = await read(keys, clock, made)
        assert found is not None
        assert (found.person_id, found.scopes, found.grant_id) == (
            UUID(int=1),
            ("emails:send",),
            UUID(int=3),
        )
        clock.advance(0.1)
        assert await read(keys, clock, made) is None


async def test_what_is_not_a_token_of_ours_is_refused(database_url: str) -> None:
    """Other algorithms, types, issuers, keys and changed parts (RFC 8725)."""
    clock = ManualClock()
    async with signing(database_url, clock) as (keys, _):
        made = await token(keys, clock)
        head, claims, signature = made.split(".")
        kid = opened(head)["kid"]
        key = await keys.signing()
        assert key.private is not None
        own = ECKey.import_key(key.private)
        foreign = ECKey.import_key(ec.generate_private_key(ec.SECP256R1()))
        secret = OctKey.import_key(json.dumps(key.public))
        other = RSAKey.import_key(rsa.generate_private_key(65537, 2048))
        right = opened(claims)
        good = {"alg": "ES256", "typ": "at+jwt", "kid": kid}
        cases = {
            "alg none": f"{part({'alg': 'none', 'typ': 'at+jwt', 'kid': kid})}.{claims}.",
            "HS256": jwt.encode({**good, "alg": "HS256"}, right, secret, algorithms=["HS256"]),
            "RS256": jwt.encode({**good, "alg": "RS256"}, right, other, algorithms=["RS256"]),
            "an ID token": jwt.encode({**good, "typ": "JWT"}, right, own),
            "no type": jwt.encode({"alg": "ES256", "kid": kid}, right, own),
            "another issuer": jwt.encode(good, {**right, "iss": "https://evil.example"}, own),
            "another audience": jwt.encode(good, {**right, "aud": "https://evil.example"}, own),
            "a list of audiences": jwt.encode(good, {**right, "aud": [ISSUER]}, own),
            "no end": jwt.encode(good, {k: v for k, v in right.items() if k != "exp"}, own),
            "a subject that is none": jwt.encode(good, {**right, "sub": "ada"}, own),
            "an end that is none": jwt.encode(good, {**right, "exp": "soon"}, own),
            "a foreign key": jwt.encode(good, right, foreign),
            "a foreign key in the head": jwt.encode(
                {**good, "jwk": foreign.as_dict(private=False)}, right, foreign
            ),
            "an unknown kid": jwt.encode({**good, "kid": "other"}, right, own),
            "no kid": jwt.encode({"alg": "ES256", "typ": "at+jwt"}, right, own),
            "changed claims": f"{head}.{part({**right, 'scope': 'full_access'})}.{signature}",
            "a padded signature": made + "==",
            "a short signature": made[:-4],
            "no signature": f"{head}.{claims}.",
            "a zero signature": f"{head}.{claims}.{part(bytes(64))}",
            "no JSON": f"{part(b'{')}.{claims}.{signature}",
            "a list": f"{part([])}.{claims}.{signature}",
            "two parts": f"{head}.{claims}",
            "nothing": "..",
            "too long": f"{head}.{'a' * 9000}.{signature}",
            "not ASCII": f"{head}.{claims}.ü",
        }
        assert jwt.encode(good, right, own).count(".") == 2
        assert await read(keys, clock, jwt.encode(good, right, own)) is not None
        for name, text in cases.items():
            assert await read(keys, clock, text) is None, name


async def test_the_signature_may_have_coordinates_that_begin_with_zeros() -> None:
    """RFC 7518, 6.2.1.2: 32 octets always."""
    short = 0
    while not short:
        made = ec.generate_private_key(ec.SECP256R1()).public_key()
        numbers = made.public_numbers()
        short = numbers.x >> 248 == 0 or numbers.y >> 248 == 0
    shown = public_key(made, "name")
    assert len(shown["x"]) == len(shown["y"]) == 43
    assert verifier_of(shown).public_numbers() == numbers


async def test_processes_that_begin_together_make_one_key(database_url: str) -> None:
    clock = ManualClock()
    async with signing(database_url, clock) as (_, pool):
        several = [SigningKeys(pool, clock, RING) for _ in range(4)]
        found = await asyncio.gather(*(keys.signing() for keys in several))
        assert len({key.kid for key in found}) == 1
        assert await pool.fetchval("SELECT count(*) FROM oauth_keys") == 1


async def test_a_new_key_is_published_before_it_signs_and_the_old_one_stays(database_url: str) -> None:
    clock = ManualClock()
    async with signing(database_url, clock) as (keys, pool):
        first = (await keys.signing()).kid
        assert await keys.rotate() == "0 keys made, 0 retired, 0 removed"
        clock.advance(ROTATED_AFTER.total_seconds())
        assert await keys.rotate() == "1 keys made, 0 retired, 0 removed"
        second = [key["kid"] for key in await keys.published()][1]
        clock.advance((SIGNS_AFTER - timedelta(seconds=1)).total_seconds())
        assert (await keys.signing()).kid == first
        made = await token(keys, clock)
        clock.advance(1)
        assert (await keys.signing()).kid == second
        clock.advance(LIFETIME.total_seconds() - 2)
        assert await keys.rotate() == "0 keys made, 0 retired, 0 removed"
        assert await read(keys, clock, made) is not None
        clock.advance(STAYS.total_seconds())
        assert await keys.rotate() == "0 keys made, 1 retired, 0 removed"
        assert [key["kid"] for key in await keys.published()] == [second]
        clock.advance(REMOVED_AFTER.total_seconds() + 1)
        assert await keys.rotate() == "0 keys made, 0 retired, 1 removed"
        assert await pool.fetchval("SELECT count(*) FROM oauth_keys") == 1


async def test_a_process_learns_of_a_key_that_another_one_signs_with(database_url: str) -> None:
    clock = ManualClock()
    async with signing(database_url, clock) as (keys, pool):
        await keys.signing()
        other = SigningKeys(pool, clock, RING)
        await other.signing()
        await other.replace()
        made = await token(other, clock)
        clock.advance(1.1)
        assert await read(keys, clock, made) is not None


async def test_replacing_ends_what_the_old_keys_signed(database_url: str) -> None:
    clock = ManualClock()
    async with signing(database_url, clock) as (keys, _):
        made = await token(keys, clock)
        kid = await keys.replace()
        assert await read(keys, clock, made) is None
        assert [key["kid"] for key in await keys.published()] == [kid]


async def test_private_keys_are_sealed_and_bound_to_their_row(database_url: str) -> None:
    """SEC-04."""
    clock = ManualClock()
    async with signing(database_url, clock) as (keys, pool):
        await keys.signing()
        (row,) = await pool.fetch(OAUTH_KEYS.read)
        assert RING.open(row["sealed"], OAUTH_KEYS.context(row["id"]))
        with pytest.raises(Exception, match="another record"):
            RING.open(row["sealed"], OAUTH_KEYS.context(uuid4()))
        again = RING.seal(b"other", OAUTH_KEYS.context(row["id"]))
        assert (
            await pool.execute(OAUTH_KEYS.replace, row["team_id"], row["id"], row["sealed"], again)
            == "UPDATE 1"
        )


async def test_a_ring_that_opens_no_key_still_verifies(database_url: str) -> None:
    clock = ManualClock()
    async with signing(database_url, clock) as (keys, pool):
        made = await token(keys, clock)
        other = SigningKeys(pool, clock, KeyRing.parse(KeyRing.generate_text()))
        assert await read(other, clock, made) is not None
        with pytest.raises(Exception, match="opens none"):
            await other.signing()
        assert await other.rotate() == "1 keys made, 0 retired, 0 removed"
        assert await read(other, clock, await token(other, clock)) is not None
