"""Links in sent mail: made with keys of the installation, read for years (LST-04)."""

from __future__ import annotations

import asyncio
from base64 import b64encode, urlsafe_b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from uuid import UUID

import asyncpg
import pytest

from kit.clock import ManualClock
from pillarbox.kernel.plugin import SLICE
from pillarbox.kernel.postgres.database import open_pool
from pillarbox.kernel.security import link_tokens, sealed_values
from pillarbox.kernel.security.link_keys import LINK_KEYS, LinkKeys
from pillarbox.kernel.security.link_tokens import LONGEST, LinkToken
from pillarbox.kernel.security.secrets import KeyRing

OLD = f"old:{b64encode(bytes(32)).decode()}"
NEW = f"new:{b64encode(bytes(range(32))).decode()}"
AT = datetime(2026, 10, 3, 8, 0, tzinfo=UTC)
TEAM = UUID("0199a3c2-6a41-7c02-8f11-5e0d9b7a3c44")
EMAIL = UUID("0199a3c2-6a41-7c02-8f11-5e0d9b7a3c45")
TOPIC = UUID("0199a3c2-6a41-7c02-8f11-5e0d9b7a3c46")
ADA = LinkToken(team_id=TEAM, email_id=EMAIL, position=3, topic_id=TOPIC, address="ada@quay.example")


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[asyncpg.Pool]:
    found = await open_pool(url, limit=4)
    try:
        yield found
    finally:
        await found.close()


def process(pool: asyncpg.Pool, ring: str = OLD, clock: ManualClock | None = None) -> LinkKeys:
    """What one process knows of the keys."""
    return LinkKeys(pool, clock or ManualClock(AT), KeyRing.parse(ring))


async def made(keys: LinkKeys, link: LinkToken = ADA, at: datetime = AT) -> str:
    return link_tokens.token(link, await keys.maker(at))


async def test_a_link_says_what_it_was_made_of_and_is_always_the_same_text(database_url: str) -> None:
    async with opened(database_url) as pool:
        keys = process(pool)
        for link in (ADA, ADA._replace(topic_id=None), ADA._replace(address="björn@xn--bcher-kva.example")):
            text = await made(keys, link)
            assert await link_tokens.read(text, keys) == link
            assert text == await made(process(pool), link)


async def test_a_link_shows_nothing(database_url: str) -> None:
    """LST-04."""
    async with opened(database_url) as pool:
        text = await made(process(pool))
        raw = urlsafe_b64decode(text + "==")
        for part in (b"ada", b"quay", TEAM.bytes, EMAIL.bytes, TOPIC.bytes):
            assert part not in raw
        other = await made(process(pool), ADA._replace(address="bob@quay.example"))
        assert text[4:20] != other[4:20]


async def test_the_longest_address_has_a_link(database_url: str) -> None:
    async with opened(database_url) as pool:
        keys = process(pool)
        link = ADA._replace(address=f"{'a' * 64}@{'b' * 180}.example")
        text = await made(keys, link)
        assert len(text) < LONGEST
        assert await link_tokens.read(text, keys) == link


async def test_every_changed_character_makes_it_no_link(database_url: str) -> None:
    """topics.md 5.7."""
    async with opened(database_url) as pool:
        keys = process(pool)
        text = await made(keys)
        for at in range(len(text)):
            other = "A" if text[at] != "A" else "B"
            assert await link_tokens.read(text[:at] + other + text[at + 1 :], keys) is None, at
            assert await link_tokens.read(text[:at], keys) is None, at


@pytest.mark.parametrize(
    "text", ["", "A", "AQ", "AQAB", "ä", "=", "AQAB====", "a b", "\0", "A" * 5000, "-_" * 40]
)
async def test_anything_else_is_no_link(database_url: str, text: str) -> None:
    async with opened(database_url) as pool:
        keys = process(pool)
        await made(keys)
        assert await link_tokens.read(text, keys) is None


async def test_another_spelling_is_no_link(database_url: str) -> None:
    async with opened(database_url) as pool:
        keys = process(pool)
        text = await made(keys)
        for other in (text + "=", text + "\n", " " + text, text.replace("_", "/").replace("-", "+") + "=="):
            assert await link_tokens.read(other, keys) is None


async def test_links_of_another_installation_are_none(database_url: str) -> None:
    async with opened(database_url) as pool:
        keys = process(pool)
        text = await made(keys)
        await pool.execute("DELETE FROM link_keys")
        foreign = process(pool)
        await foreign.maker(AT)
        assert await link_tokens.read(text, foreign) is None


async def test_processes_that_begin_at_once_have_one_key(database_url: str) -> None:
    async with opened(database_url) as pool:
        several = [process(pool) for _ in range(6)]
        texts = await asyncio.gather(*(made(keys) for keys in several))
        assert len(set(texts)) == 1
        assert [row["id"] for row in await pool.fetch("SELECT id FROM link_keys")] == [1]


async def test_a_process_learns_of_the_first_key_with_the_first_link(database_url: str) -> None:
    async with opened(database_url) as pool:
        clock = ManualClock(AT)
        reads, writes = process(pool, clock=clock), process(pool)
        assert await link_tokens.read("AQABAAAA", reads) is None
        text = await made(writes)
        clock.advance(1.1)
        assert await link_tokens.read(text, reads) == ADA


async def test_readers_that_come_at_once_all_know_the_key(database_url: str) -> None:
    async with opened(database_url) as pool:
        text, reads = await made(process(pool)), process(pool)
        found = await asyncio.gather(*(link_tokens.read(text, reads) for _ in range(5)))
        assert found == [ADA] * 5


async def test_forgeries_are_refused_without_the_database(database_url: str) -> None:
    async with opened(database_url) as pool:
        keys = process(pool)
        text = await made(keys)
        await pool.execute("DROP TABLE link_keys")
        assert await link_tokens.read(text, keys) == ADA
        assert await link_tokens.read(text[:40] + ("B" if text[40] == "A" else "A") + text[41:], keys) is None
        assert await link_tokens.read("f" + text[1:], keys) is None


async def test_a_newer_key_makes_links_of_later_mail_and_older_links_stay(database_url: str) -> None:
    async with opened(database_url) as pool:
        clock = ManualClock(AT)
        keys, behind = process(pool, clock=clock), process(pool, clock=clock)
        old, later = await made(keys), AT + timedelta(minutes=6)
        assert await made(behind) == old
        assert await keys.add() == 2
        assert await made(keys, at=AT + timedelta(minutes=4)) == old
        clock.advance(360)
        new = await made(behind, at=later)
        assert new != old
        assert await made(keys) == await made(behind) == old
        for text in (old, new):
            assert await link_tokens.read(text, keys) == await link_tokens.read(text, behind) == ADA


async def test_links_survive_a_rotation_of_the_key_ring(database_url: str) -> None:
    async with opened(database_url) as pool:
        text = await made(process(pool))
        assert LINK_KEYS in SLICE.sealed
        both = KeyRing.parse(f"{NEW},{OLD}")
        assert await sealed_values.reseal(pool, [LINK_KEYS], both) == 1
        assert (await sealed_values.counted(pool, [LINK_KEYS], KeyRing.parse(NEW))).by_key == {"new": 1}
        assert await sealed_values.forget_unused(pool, [LINK_KEYS], both) == ["new"]
        assert await link_tokens.read(text, process(pool, NEW)) == ADA


async def test_a_key_that_the_ring_lost_is_named_and_another_one_is_made(database_url: str) -> None:
    async with opened(database_url) as pool:
        text = await made(process(pool))
        found = await sealed_values.counted(pool, [LINK_KEYS], KeyRing.parse(NEW))
        [sentence] = [one.sentence for one in found.unopened]
        assert sentence.startswith("The key 1 of links in sent mail needs the key old,")
        keys = process(pool, NEW)
        assert await link_tokens.read(await made(keys), keys) == ADA
        assert await link_tokens.read(text, keys) is None
