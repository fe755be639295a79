"""Mail is found by address, words of the subject, state, domain and time (docs/decisions/0049)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from kit.clock import START
from kit.manual_world import clock_of
from kit.world import Team, World
from pillarbox.emails.retention import EmailRetention, first_id
from pillarbox.emails.search import queries
from pillarbox.emails.search.blocks import LATE, SETTLED, SearchBlocks
from pillarbox.emails.search.filters import EmailFilter, NotAFilter
from pillarbox.emails.search.find import find
from pillarbox.emails.search.terms import Terms, words
from pillarbox.kernel.storage.blobs import BlobStore

BLOCK = 7
SUBJECTS = (
    "Your ferry no. 1",
    "Your ferry, no. 2",
    "FERRY: Überfahrt",
    "Timetable",
    "Überfahrt nach Åland",
    "Über die Fähre",
    "フェリー 時刻表",
    "100% off_season",
    "party at the pier",
)


async def accept(team: Team, count: int, domain: str) -> None:
    """Emails to changing people, a second apart."""
    for number in range(count):
        await team.send(
            **{
                "from_": f"Harbor <{'Bill_ing' if number % 4 == 0 else 'news'}@{domain}>",
                "to": [f"ann{number % 5}@quay.example", *(["bo@pier.example"] if number % 3 == 0 else [])],
                "subject": SUBJECTS[number % len(SUBJECTS)],
                **({"scheduled_at": "in 20 days"} if number % 11 == 5 else {}),
            }
        )


async def filled(pillarbox: World) -> tuple[Team, Team]:
    """Two teams with mail in several states."""
    harbor, quay = await pillarbox.team("Harbor"), await pillarbox.team("Quay")
    await harbor.domain("harbor.example")
    await harbor.domain("bücher.example")
    await quay.domain("light.example")
    for domain in ("harbor.example", "bücher.example"):
        await accept(harbor, 20, domain)
        clock_of(pillarbox).advance(60)
    await accept(quay, 9, "light.example")
    for fate in ("bounced", "complained", "suppressed"):
        await harbor.send(to=[f"{fate}@pillarbox.test"], from_="news@harbor.example", subject=f"Ferry {fate}")
    await pillarbox.turn()
    return harbor, quay


async def described(pillarbox: World) -> int:
    """Describe what is old enough, in small blocks; how many there are now."""
    clock_of(pillarbox).advance(LATE.total_seconds() + 1)
    await SearchBlocks(pillarbox.pool, pillarbox.clock, BLOCK).keep_up()
    count: int = await pillarbox.pool.fetchval("SELECT count(*) FROM search_blocks")
    return count


async def all_pages(pillarbox: World, team: Team | None, wanted: EmailFilter, limit: int) -> list[UUID]:
    """The ids of all pages, one after the other."""
    found: list[UUID] = []
    cursor = None
    while True:
        page = await find(pillarbox.pool, team and team.id, wanted, limit=limit, after=cursor)
        found += [email.id for email in page.emails]
        assert len(page.emails) <= limit
        if page.following is None:
            return found
        cursor = page.following


ROWS = """
    SELECT e.team_id, e.id, e.sender, e.domain_name, e.subject, e.created_at,
           array_agg(r.address) AS addresses, array_agg(r.state) AS states
      FROM emails e JOIN recipients r ON r.team_id = e.team_id AND r.email_id = e.id
     GROUP BY e.team_id, e.id
     ORDER BY e.id DESC
"""


def fits(row: Any, asked: dict[str, Any]) -> bool:
    """What each question means, said once more and without any index."""
    pairs = list(zip(row["addresses"], row["states"], strict=True))
    if "to" in asked:
        pairs = [pair for pair in pairs if pair[0].endswith(asked["to"].lower())]
    if "state" in asked:
        pairs = [pair for pair in pairs if pair[1] == asked["state"]]
    sender = row["sender"].split("<")[-1].strip(">").lower().replace("bücher", "xn--bcher-kva")
    return (
        bool(pairs)
        and asked.get("sender", sender).lower().replace("bücher", "xn--bcher-kva") == sender
        and asked.get("domain", row["domain_name"]).replace("bücher", "xn--bcher-kva") == row["domain_name"]
        and set(words(asked.get("subject", ""))) <= set(words(row["subject"]))
        and ("since" not in asked or row["created_at"] >= asked["since"])
        and ("until" not in asked or row["created_at"] < asked["until"])
    )


ASKED: Sequence[dict[str, Any]] = (
    {},
    {"to": "ann1@quay.example"},
    {"to": "Bo@Pier.example"},
    {"to": "nobody@quay.example"},
    {"to": "@pier.example"},
    {"to": "@example.com"},
    {"sender": "bill_ing@harbor.example"},
    {"sender": "news@bücher.example"},
    {"sender": "billXing@harbor.example"},
    {"domain": "bücher.example"},
    {"domain": "light.example"},
    {"subject": "ferry"},
    {"subject": "no 2 your"},
    {"subject": "überfahrt"},
    {"subject": "ferry ÜBERFAHRT"},
    {"subject": "時刻"},
    {"subject": "part"},
    {"subject": "100% off"},
    {"subject": "pelican"},
    {"state": "delivered"},
    {"state": "scheduled"},
    {"state": "bounced"},
    {"state": "complained"},
    {"state": "suppressed"},
    {"state": "clicked"},
    {"state": "delivered", "to": "ann1@quay.example"},
    {"state": "scheduled", "subject": "ferry"},
    {"state": "bounced", "subject": "ferry", "domain": "harbor.example"},
    {"state": "bounced", "to": "bo@pier.example"},
    {
        "to": "bo@pier.example",
        "subject": "ferry",
        "domain": "harbor.example",
        "sender": "news@harbor.example",
    },
)


async def copy(pillarbox: World, table: str, key: str, of: UUID, changes: dict[str, str]) -> None:
    """Store a row once more, with changes."""
    await pillarbox.pool.execute(
        f"INSERT INTO {table} SELECT (jsonb_populate_record(r, $2::jsonb)).*"
        f"  FROM {table} r WHERE r.{key} = $1",
        of,
        json.dumps(changes),
    )


@pytest.mark.parametrize("limit", [1, 4, 100])
@pytest.mark.parametrize("has_blocks", [False, True])
async def test_every_filter_finds_exactly_what_fits(
    pillarbox: World, limit: int, *, has_blocks: bool
) -> None:
    harbor, quay = await filled(pillarbox)
    if has_blocks:
        assert await described(pillarbox) >= 5
        await accept(harbor, 4, "harbor.example")
    rows = await pillarbox.pool.fetch(ROWS)
    middle = rows[len(rows) // 2]["created_at"]
    times = ({"since": middle}, {"until": middle}, {"since": middle, "subject": "ferry"})
    wrong = {}
    for asked in (*ASKED, *times):
        wanted = EmailFilter.parsed(**asked)
        for team in (harbor, quay, None):
            expected = [row["id"] for row in rows if team in (None,) or row["team_id"] == team.id]
            expected = [row["id"] for row in rows if row["id"] in expected and fits(row, asked)]
            if await all_pages(pillarbox, team, wanted, limit) != expected:
                wrong[f"{asked} of {team and team.id}"] = expected
    assert wrong == {}


async def test_one_team_never_finds_mail_of_another(pillarbox: World) -> None:
    """TEN-01."""
    _, quay = await filled(pillarbox)
    await described(pillarbox)
    for asked in ASKED:
        page = await find(pillarbox.pool, quay.id, EmailFilter.parsed(**asked), limit=100)
        assert {email.team_id for email in page.emails} <= {quay.id}


async def test_a_cursor_is_a_position(pillarbox: World) -> None:
    """The email behind which a page begins need not exist any more."""
    harbor, _ = await filled(pillarbox)
    everything = await all_pages(pillarbox, harbor, EmailFilter(), 100)
    between = UUID(int=everything[5].int + 1)
    page = await find(pillarbox.pool, harbor.id, EmailFilter(), limit=3, after=between)
    assert [email.id for email in page.emails] == everything[5:8]
    assert page.following == everything[7]


async def test_mail_that_was_committed_late_is_found_once_its_block_is_counted_again(
    pillarbox: World,
) -> None:
    harbor, _ = await filled(pillarbox)
    await described(pillarbox)
    old = await pillarbox.pool.fetchval(
        "SELECT min(id::text)::uuid FROM emails WHERE team_id = $1", harbor.id
    )
    late = UUID(int=old.int + 1)
    await copy(pillarbox, "emails", "id", old, {"id": str(late), "subject": "Albatross"})
    await copy(pillarbox, "recipients", "email_id", old, {"email_id": str(late)})
    wanted = EmailFilter.parsed(subject="albatross")
    blocks = SearchBlocks(pillarbox.pool, pillarbox.clock, BLOCK)
    assert await all_pages(pillarbox, harbor, wanted, 10) == []
    assert await blocks.settle(first_id(pillarbox.clock.now() - SETTLED)) == 0
    clock_of(pillarbox).advance(SETTLED.total_seconds())
    assert await blocks.settle(first_id(pillarbox.clock.now() - SETTLED)) == 1
    assert await all_pages(pillarbox, harbor, wanted, 10) == [late]
    assert await blocks.settle(first_id(pillarbox.clock.now())) == 0


async def test_blocks_go_with_their_emails(pillarbox: World) -> None:
    """DUR-15."""
    await filled(pillarbox)
    assert await described(pillarbox) > 0
    clock_of(pillarbox).advance(timedelta(days=40).total_seconds())
    await pillarbox.turn()
    app = pillarbox.app
    kept = EmailRetention(app.kit.pool, app.kit.clock, app.need(BlobStore), emails=1, bodies=0)
    clock_of(pillarbox).advance(timedelta(days=3).total_seconds())
    while await kept.purge_emails():
        pass
    assert await pillarbox.pool.fetchval("SELECT count(*) FROM emails") == 0
    await SearchBlocks(pillarbox.pool, pillarbox.clock, BLOCK).drop_empty()
    assert await pillarbox.pool.fetchval("SELECT count(*) FROM search_blocks") == 0


async def test_who_describes_the_same_emails_at_the_same_time_makes_one_block(pillarbox: World) -> None:
    harbor, _ = await filled(pillarbox)
    assert await queries.add_block(harbor.db, UUID(int=0), UUID(int=9), 1, b"\0")
    assert not await queries.add_block(harbor.db, UUID(int=0), UUID(int=8), 1, b"\0")


async def test_postgresql_finds_the_bits_that_were_set(pillarbox: World) -> None:
    """No term of a block is ever missed; of other terms few seem to be there."""
    terms = Terms()
    for number in range(400):
        terms.add("news@harbor.example", "harbor.example", f"No. {number}", [f"ann{number}@quay.example"])
    team = await pillarbox.team()
    await queries.add_block(team.db, UUID(int=0), UUID(int=9), 400, terms.bloom_filter(0))

    async def has(**asked: Any) -> bool:
        numbers = EmailFilter.parsed(**asked).numbers
        found, _ = await queries.blocks(pillarbox.pool, team.id, UUID(int=99), UUID(int=1), numbers, 5)
        return bool(found)

    for number in range(0, 400, 7):
        assert await has(subject=f"{number}", to=f"ann{number}@quay.example", domain="harbor.example")
    seeming = [await has(to=f"bo{number}@quay.example") for number in range(400)]
    assert sum(seeming) < 20


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Your order no. 5!", ["your", "order", "no", "5"]),
        ("don't", ["don", "t"]),
        ("STRASSE straße", ["strasse", "strasse"]),
        ("snake_case", ["snake", "case"]),
        ("Ｆｅｒｒｙ", ["ferry"]),
        ("港で会う", ["港", "で", "会", "う"]),
        ("x" * 70, ["x" * 64]),
        ("…!", []),
        ("İŞIK Işık ışık işik", ["işik"] * 4),
        ("Überfahrt u\u0308berfahrt ÜBERFAHRT", ["überfahrt"] * 3),
        ("ΐ " + "ΐ".upper(), ["ΐ"] * 2),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("ไทย!", ["ไ", "ท", "ย"]),
        ("\u200fשלום\u200f Rech\u00adnung", ["שלום", "rechnung"]),
        ("❤\ufe0f 🎉 5\ufe0f\u20e3", ["5"]),
        ("𠮷野家", ["𠮷", "野", "家"]),
        ("ﬁne ½", ["fine", "1", "2"]),
    ],
)
def test_words(text: str, found: list[str]) -> None:
    assert words(text) == found


@pytest.mark.parametrize(
    "asked",
    [
        {"to": "nobody"},
        {"to": "@"},
        {"to": "@nowhere"},
        {"sender": "<>"},
        {"subject": "..."},
        {"subject": ""},
        {"state": "lost"},
        {"domain": "not a domain"},
        {"to": "a\0b@quay.example"},
        {"to": "a\udcff@quay.example"},
        {"subject": "\udcff"},
        {"since": START, "until": START},
    ],
)
def test_what_cannot_be_looked_for_is_refused(asked: dict[str, Any]) -> None:
    with pytest.raises(NotAFilter):
        EmailFilter.parsed(**asked)
