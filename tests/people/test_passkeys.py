"""Passkeys: made, used, and every answer that is not right."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from kit.passkey_device import PRESENT, PasskeyDevice, octets_of, text_of
from pillarbox.kernel.postgres.database import open_pool
from pillarbox.people.factors import passkey_queries
from pillarbox.people.factors.passkeys import LASTS, MOST_PASSKEYS, Passkeys, RelyingParty

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
ORIGIN = "https://mail.harbor.example"
PASSKEYS = Passkeys(RelyingParty.of_url(ORIGIN))


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who has passkeys."""

    pool: asyncpg.Pool
    id: UUID

    async def makes(self, device: PasskeyDevice, **changed: Any) -> bool:
        asked = await PASSKEYS.ask_for_new(self.pool, NOON, self.id, "ada@harbor.example", "Ada")
        return await self.brings(asked.token, device.makes(asked.options, **changed))

    async def brings(self, token: str, answer: str, at: datetime = NOON) -> bool:
        async with self.pool.acquire() as conn, conn.transaction():
            return await PASSKEYS.add(conn, at, self.id, token, answer, "Phone")

    async def confirms(self, device: PasskeyDevice, **changed: Any) -> bool:
        asked = await PASSKEYS.ask_to_confirm(self.pool, NOON, self.id)
        async with self.pool.acquire() as conn, conn.transaction():
            return await PASSKEYS.confirm(
                conn, NOON, self.id, asked.token, device.signs(asked.options, **changed)
            )


async def logs_in(pool: asyncpg.Pool, token: str, answer: str, at: datetime = NOON) -> UUID | None:
    async with pool.acquire() as conn, conn.transaction():
        return await PASSKEYS.log_in(conn, at, token, answer)


async def a_person(pool: asyncpg.Pool) -> Person:
    person_id = uuid4()
    await pool.execute(
        "INSERT INTO people (id, email, email_key, created_at) VALUES ($1, $2, $2, $3)",
        person_id,
        f"{person_id}@harbor.example",
        NOON,
    )
    return Person(pool, person_id)


def a_device(name: bytes = b"phone", **changed: Any) -> PasskeyDevice:
    return PasskeyDevice(ORIGIN, name + bytes(16), **changed)


@asynccontextmanager
async def somebody(url: str) -> AsyncIterator[Person]:
    pool = await open_pool(url, limit=8)
    try:
        yield await a_person(pool)
    finally:
        await pool.close()


@pytest.mark.parametrize(
    ("url", "party"),
    [
        ("https://Mail.Harbor.example", ("mail.harbor.example", "https://mail.harbor.example")),
        ("https://harbor.example:8443/box", ("harbor.example", "https://harbor.example:8443")),
        ("http://localhost:8025", ("localhost", "http://localhost:8025")),
        ("http://harbor.example", None),
        ("http://127.0.0.1:8025", ("localhost", "http://localhost:8025")),
        ("http://10.0.0.1", None),
        ("https://192.0.2.1", None),
        ("https://[::1]:8025", None),
    ],
)
def test_to_whom_passkeys_belong(url: str, party: tuple[str, str] | None) -> None:
    found = RelyingParty.of_url(url)
    assert (found and (found.id, found.origin)) == party
    assert Passkeys(found).are_possible is (party is not None)


async def test_a_passkey_is_made_logs_in_and_confirms(database_url: str) -> None:
    """SEC-02."""
    async with somebody(database_url) as ada:
        phone = a_device()
        assert await ada.makes(phone)
        (shown,) = await passkey_queries.of_person(ada.pool, ada.id)
        assert (shown.id, shown.name, shown.transports) == (phone.id, "Phone", ["internal"])
        asked = await PASSKEYS.ask_to_log_in(ada.pool, NOON)
        assert await logs_in(ada.pool, asked.token, phone.signs(asked.options)) == ada.id
        assert await ada.confirms(phone)
        (shown,) = await passkey_queries.of_person(ada.pool, ada.id)
        assert shown.last_used_at == NOON


async def test_what_a_browser_is_asked(database_url: str) -> None:
    async with somebody(database_url) as ada:
        await ada.makes(a_device())
        asked = await PASSKEYS.ask_for_new(ada.pool, NOON, ada.id, "ada@harbor.example", None)
        wanted = json.loads(asked.options)
        assert wanted["rp"] == {"name": "Pillarbox", "id": "mail.harbor.example"}
        assert wanted["user"]["name"] == wanted["user"]["displayName"] == "ada@harbor.example"
        assert octets_of(wanted["user"]["id"]) == ada.id.bytes
        assert [one["id"] for one in wanted["excludeCredentials"]] == [text_of(a_device().id)]
        assert wanted["authenticatorSelection"]["userVerification"] == "required"
        assert wanted["authenticatorSelection"]["residentKey"] == "required"
        assert wanted["attestation"] == "none"
        login = json.loads((await PASSKEYS.ask_to_log_in(ada.pool, NOON)).options)
        assert login["allowCredentials"] == []
        confirm = json.loads((await PASSKEYS.ask_to_confirm(ada.pool, NOON, ada.id)).options)
        assert [one["id"] for one in confirm["allowCredentials"]] == [text_of(a_device().id)]
        assert len(octets_of(login["challenge"])) == 32


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("another origin", {"origin": "https://mail.harbor.example.evil.example"}),
    ("plain HTTP", {"origin": "http://mail.harbor.example"}),
    ("another host", {"party": "evil.example"}),
    ("another challenge", {"challenge": text_of(bytes(32))}),
    ("another kind", {"type": "webauthn.other"}),
]


@pytest.mark.parametrize(("what", "changed"), WRONG, ids=[name for name, _ in WRONG])
async def test_an_answer_for_something_else_is_refused(
    database_url: str, what: str, changed: dict[str, Any]
) -> None:
    async with somebody(database_url) as ada:
        assert not await ada.makes(a_device(), **changed)
        phone = a_device()
        assert await ada.makes(phone)
        assert not await ada.confirms(phone, **changed)
        asked = await PASSKEYS.ask_to_log_in(ada.pool, NOON)
        assert await logs_in(ada.pool, asked.token, phone.signs(asked.options, **changed)) is None


async def test_a_passkey_that_did_not_ask_who_uses_it_is_refused(database_url: str) -> None:
    async with somebody(database_url) as ada:
        assert not await ada.makes(a_device(flags=PRESENT))
        phone = a_device()
        assert await ada.makes(phone)
        phone.flags = PRESENT
        assert not await ada.confirms(phone)


async def test_the_signature_of_another_key_is_refused(database_url: str) -> None:
    async with somebody(database_url) as ada:
        phone = a_device()
        assert await ada.makes(phone)
        thief = a_device(user=ada.id.bytes)
        assert not await ada.confirms(thief)


async def test_a_passkey_is_its_persons_alone(database_url: str) -> None:
    async with somebody(database_url) as ada:
        bob = await a_person(ada.pool)
        phone = a_device()
        assert await ada.makes(phone)
        assert not await bob.confirms(phone)
        assert not await bob.makes(phone), "somebody has it"
        phone.user = bob.id.bytes
        asked = await PASSKEYS.ask_to_log_in(ada.pool, NOON)
        assert await logs_in(ada.pool, asked.token, phone.signs(asked.options)) is None
        assert await passkey_queries.remove(ada.pool, bob.id, phone.id) is None
        assert await passkey_queries.remove(ada.pool, ada.id, phone.id) == "Phone"
        phone.user = ada.id.bytes
        assert not await ada.confirms(phone)


async def test_who_is_disabled_does_not_log_in(database_url: str) -> None:
    async with somebody(database_url) as ada:
        phone = a_device()
        assert await ada.makes(phone)
        await ada.pool.execute("UPDATE people SET disabled_at = $2 WHERE id = $1", ada.id, NOON)
        asked = await PASSKEYS.ask_to_log_in(ada.pool, NOON)
        assert await logs_in(ada.pool, asked.token, phone.signs(asked.options)) is None


async def test_a_copy_of_a_passkey_shows_by_its_count(database_url: str) -> None:
    async with somebody(database_url) as ada:
        phone = a_device(count=1)
        assert await ada.makes(phone)
        assert await ada.confirms(phone)
        phone.count -= 2
        assert not await ada.confirms(phone)
        phone.count += 2
        assert await ada.confirms(phone)


async def test_a_challenge_is_for_one_purpose_one_person_and_five_minutes(database_url: str) -> None:
    async with somebody(database_url) as ada:
        phone = a_device()
        assert await ada.makes(phone)
        bob = await a_person(ada.pool)
        confirm = await PASSKEYS.ask_to_confirm(ada.pool, NOON, ada.id)
        assert await logs_in(ada.pool, confirm.token, phone.signs(confirm.options)) is None
        late = await PASSKEYS.ask_to_log_in(ada.pool, NOON)
        assert await logs_in(ada.pool, late.token, phone.signs(late.options), NOON + LASTS) is None
        new = await PASSKEYS.ask_for_new(ada.pool, NOON, ada.id, "ada@harbor.example", None)
        assert not await bob.brings(new.token, a_device(b"other").makes(new.options))
        assert await logs_in(ada.pool, "unknown", phone.signs(late.options)) is None


async def test_of_answers_that_arrive_together_one_passes(database_url: str) -> None:
    async with somebody(database_url) as ada:
        phone = a_device()
        asked = await PASSKEYS.ask_for_new(ada.pool, NOON, ada.id, "ada@harbor.example", None)
        answer = phone.makes(asked.options)
        found = await asyncio.gather(*[ada.brings(asked.token, answer) for _ in range(6)])
        assert sorted(found) == [*[False] * 5, True]
        login = await PASSKEYS.ask_to_log_in(ada.pool, NOON)
        signed = phone.signs(login.options)
        ids = await asyncio.gather(*[logs_in(ada.pool, login.token, signed) for _ in range(6)])
        assert sorted(map(str, ids)) == sorted([*["None"] * 5, str(ada.id)])


async def test_nobody_has_more_than_so_many(database_url: str) -> None:
    async with somebody(database_url) as ada:
        for number in range(MOST_PASSKEYS):
            assert await ada.makes(a_device(b"%d" % number))
        assert not await ada.makes(a_device(b"one more"))


def _nested(answer: str) -> str:
    return "[" * 20_000


def _other(answer: str, **changed: Any) -> str:
    return json.dumps({**json.loads(answer), **changed})


def _response(answer: str, **changed: Any) -> str:
    said = json.loads(answer)
    said["response"].update(changed)
    return json.dumps(said)


DAMAGE: list[tuple[str, Callable[[str], str]]] = [
    ("nothing", lambda _: ""),
    ("no JSON", lambda _: "{"),
    ("no object", lambda _: "[]"),
    ("a number", lambda _: "1e999"),
    ("deeply nested", _nested),
    ("too long", lambda answer: answer + " " * 40_000),
    ("no type", lambda answer: _other(answer, type=None)),
    ("no response", lambda answer: _other(answer, response=None)),
    ("two ids", lambda answer: _other(answer, rawId=text_of(b"other"))),
    ("no base64", lambda answer: _other(answer, id="é", rawId="é")),
    ("odd attachment", lambda answer: _other(answer, authenticatorAttachment="tail")),
    ("no client data", lambda answer: _response(answer, clientDataJSON="")),
    ("a list as client data", lambda answer: _response(answer, clientDataJSON=text_of(b"[]"))),
    ("client data of no UTF-8", lambda answer: _response(answer, clientDataJSON=text_of(b"\xff"))),
    ("nested client data", lambda answer: _response(answer, clientDataJSON=text_of(b"[" * 15_000))),
    ("no CBOR", lambda answer: _response(answer, attestationObject="AA", authenticatorData="AA")),
    ("nested CBOR", lambda answer: _response(answer, attestationObject=text_of(b"\x81" * 15_000))),
    ("no attestation", lambda answer: _response(answer, attestationObject="")),
    ("no data", lambda answer: _response(answer, authenticatorData="")),
    ("no signature", lambda answer: _response(answer, signature="")),
    ("unpaired surrogate", lambda answer: _other(answer, id="\ud800", rawId="\ud800")),
]


@pytest.mark.parametrize(("what", "damage"), DAMAGE, ids=[name for name, _ in DAMAGE])
async def test_a_damaged_answer_is_refused(
    database_url: str, what: str, damage: Callable[[str], str]
) -> None:
    async with somebody(database_url) as ada:
        phone, other = a_device(), a_device(b"other")
        assert await ada.makes(phone)
        new = await PASSKEYS.ask_for_new(ada.pool, NOON, ada.id, "ada@harbor.example", None)
        made = other.makes(new.options)
        asked = await PASSKEYS.ask_to_log_in(ada.pool, NOON)
        signed = phone.signs(asked.options)
        # What is damaged in one of the two answers alone leaves the other as it was.
        if what not in ("no data", "no signature"):
            assert not await ada.brings(new.token, damage(made))
        if what not in ("nested CBOR", "no attestation"):
            assert await logs_in(ada.pool, asked.token, damage(signed)) is None
        assert len(await passkey_queries.of_person(ada.pool, ada.id)) == 1
