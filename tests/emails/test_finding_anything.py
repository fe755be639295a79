"""Whatever is asked for, the answer is that of a plain comparison of every email (docs/decisions/0049)."""

from __future__ import annotations

import asyncio
import random
import unicodedata
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kit.manual_world import clock_of, manual_world
from kit.world import Team, World
from pillarbox.emails.search.blocks import LATE, SearchBlocks
from pillarbox.emails.search.filters import EmailFilter
from pillarbox.emails.search.find import find
from pillarbox.kernel.process.clock_watch import ClockWatch
from pillarbox.mail.message.address import parse_mailbox

WORDS = (  # noqa: SIM905 (prose reads better as prose)
    'ferry Ferry FERRY ferryman 1 11 111 100% a_b a\\b "quoted" d\'or Überfahrt u\u0308berfahrt İstanbul'
    " ISTANBUL straße STRASSE フェリー 時刻表 ไทย हिन्दी שלום \u200fשלום\u200f 🎉"
    " Ｆｅｒｒｙ ﬁne K \u212a e\u0301té"
).split(" ")
ASCII_WORDS = [word for word in WORDS if word.isascii()]
SENDERS = (
    "news@harbor.example",
    "News@HARBOR.example",
    "Harbor < n_ws@harbor.example >",
    '"Harbor, <north>" <news@harbor.example>',
    '"a<b"@harbor.example',
    'Harbor <"a b"@harbor.example>',
    '"n\\ews"@harbor.example',
    "Übung@harbor.example",
    "U\u0308bung@harbor.example",
    "news@bücher.example",
    "Bücher <news@xn--bcher-kva.example>",
)
PEOPLE = (
    "ann@quay.example",
    "Ann@Quay.example",
    "a_n@quay.example",
    "ann@notquay.example",
    '"bo<x"@pier.example',
    "bo@käse.example",
    "bo@xn--kse-qla.example",
    "bounced@pillarbox.test",
    "complained@pillarbox.test",
    "suppressed@pillarbox.test",
)
STATES = ("delivered", "scheduled", "queued", "bounced", "complained", "suppressed", "failed")
ROWS = """
    SELECT e.team_id, e.id, e.sender, e.subject, e.created_at, array_agg(r.mailbox) AS people,
           array_agg(r.state) AS states
      FROM emails e JOIN recipients r ON r.team_id = e.team_id AND r.email_id = e.id
     GROUP BY e.team_id, e.id
     ORDER BY e.id DESC
"""


def subject(chance: random.Random) -> str:
    """Half of them are ASCII alone, because these are compared in another way."""
    return " ".join(chance.sample(chance.choice((WORDS, ASCII_WORDS)), chance.randint(1, 4)))


async def accept(chance: random.Random, pillarbox: World, teams: list[Team], count: int) -> None:
    """Mail of both teams; now and then some time passes."""
    for _ in range(count):
        team, senders = chance.choice(((teams[0], SENDERS), (teams[1], ("news@light.example",))))
        await team.send(
            from_=chance.choice(senders),
            to=chance.sample(PEOPLE, chance.randint(1, 2)),
            subject=subject(chance),
            **({"scheduled_at": "in 20 days"} if chance.random() < 0.1 else {}),
        )
        clock_of(pillarbox).advance(chance.choice((0, 0.001, 20)))


@pytest.fixture
@asynccontextmanager
async def harbor_and_quay(database_url: str, tmp_path: Path) -> AsyncIterator[tuple[World, list[Team]]]:
    async with manual_world(database_url, tmp_path) as pillarbox:
        teams = [await pillarbox.team("Harbor"), await pillarbox.team("Quay")]
        await teams[0].domain("harbor.example")
        await teams[0].domain("bücher.example")
        await teams[1].domain("light.example")
        yield pillarbox, teams


def plain_words(text: str) -> set[str]:
    """What is a word, said once more: each character of a script without blanks, and runs of all others."""
    found, run = set(), ""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    folded = unicodedata.normalize("NFC", folded.replace("\u200f", "").replace("i\u0307", "i"))
    for character in f"{folded} ":
        name = unicodedata.name(character, "")
        alone = name.startswith(("THAI", "CJK", "HIRAGANA", "KATAKANA"))
        mark = unicodedata.category(character) in {"Mn", "Mc"}
        if (character.isalnum() and not alone) or (mark and run):
            run += character
            continue
        found |= {run} if run else set()
        run = ""
        found |= {character} if alone else set()
    return found


def fits(row: Any, asked: dict[str, Any]) -> bool:
    sender = parse_mailbox(row["sender"])
    people = [
        (parse_mailbox(one).key, state) for one, state in zip(row["people"], row["states"], strict=True)
    ]
    if "to" in asked:
        key = parse_mailbox(asked["to"].removeprefix("@") if asked["to"][0] != "@" else f"x{asked['to']}").key
        people = [
            one for one in people if one[0] == key or (asked["to"][0] == "@" and one[0].endswith(key[1:]))
        ]
    return (
        any(state == asked.get("state", state) for _, state in people)
        and ("sender" not in asked or sender.key == parse_mailbox(asked["sender"]).key)
        and (
            "domain" not in asked
            or sender.domain == parse_mailbox(f"x@{asked['domain'].removesuffix('.')}").domain
        )
        and plain_words(asked.get("subject", "")) <= plain_words(row["subject"])
        and ("since" not in asked or row["created_at"] >= asked["since"])
        and ("until" not in asked or row["created_at"] < asked["until"])
    )


def question(chance: random.Random, begun: datetime, ended: datetime) -> dict[str, Any]:
    """A filter of some of the fields, of values that mail has, that are near to one, or that none has."""
    since, until = sorted(begun + (ended - begun) * chance.uniform(-0.2, 1.2) for _ in range(2))
    every: dict[str, Any] = {
        "to": chance.choice(
            (*PEOPLE, "@quay.example", "@käse.example", "@Pier.EXAMPLE", "nobody@quay.example")
        ),
        "sender": chance.choice((*SENDERS, "nXws@harbor.example", "news@light.example")),
        "subject": " ".join(chance.sample([*WORDS, "erry", "xn"], chance.randint(1, 2))),
        "state": chance.choice(STATES),
        "domain": chance.choice(
            ("harbor.example", "BÜCHER.example", "xn--bcher-kva.example", "light.example.")
        ),
        "since": since.replace(microsecond=0),
        "until": until.replace(microsecond=0) + timedelta(seconds=1),
    }
    asked = {name: every[name] for name in chance.sample(sorted(every), chance.choice((1, 1, 2, 2, 3)))}
    if not plain_words(asked.get("subject", "x")):
        del asked["subject"]
    return asked


async def all_pages(pillarbox: World, team: Team | None, asked: dict[str, Any], limit: int) -> list[UUID]:
    found: list[UUID] = []
    cursor = None
    while True:
        wanted = EmailFilter.parsed(**asked)
        page = await find(pillarbox.pool, team and team.id, wanted, limit=limit, after=cursor)
        found += [email.id for email in page.emails]
        if page.following is None:
            return found
        cursor = page.following


@pytest.mark.parametrize(
    ("seed", "mails", "questions"),
    [
        (1, 30, 40),
        pytest.param(2, 60, 150, marks=pytest.mark.slow),
        pytest.param(3, 60, 150, marks=pytest.mark.slow),
    ],
)
async def test_any_question_about_any_mail(
    harbor_and_quay: tuple[World, list[Team]], seed: int, mails: int, questions: int
) -> None:
    pillarbox, teams = harbor_and_quay
    chance = random.Random(seed)
    blocks = SearchBlocks(pillarbox.pool, pillarbox.clock, 7)
    wrong = {}
    for _ in range(2):
        await accept(chance, pillarbox, teams, mails)
        await pillarbox.turn()
        rows = await pillarbox.pool.fetch(ROWS)
        for _ in range(questions):
            asked = question(chance, rows[-1]["created_at"], rows[0]["created_at"])
            team = chance.choice((*teams, None))
            expected = [
                row["id"] for row in rows if (team is None or row["team_id"] == team.id) and fits(row, asked)
            ]
            if await all_pages(pillarbox, team, asked, chance.choice((1, 3, 50))) != expected:
                wrong[str(asked)] = [
                    row["subject"] + " from " + row["sender"] for row in rows if row["id"] in expected
                ]
        clock_of(pillarbox).advance(LATE.total_seconds() + 1)
        await blocks.keep_up()
    assert wrong == {}


async def test_mail_is_found_while_it_gets_its_block(harbor_and_quay: tuple[World, list[Team]]) -> None:
    """What was not in a block at one statement, and is at the next one, belongs to the page all the same."""
    pillarbox, teams = harbor_and_quay
    accepted = [await teams[0].send(subject=f"ferry {number}") for number in range(40)]
    clock_of(pillarbox).advance(LATE.total_seconds() + 1)
    blocks = SearchBlocks(pillarbox.pool, pillarbox.clock, 4)

    async def made_and_dropped() -> None:
        while True:
            await blocks.keep_up()
            await pillarbox.pool.execute("DELETE FROM search_blocks")

    making = asyncio.create_task(made_and_dropped())
    try:
        for _ in range(50):
            found = await all_pages(pillarbox, teams[0], {"subject": "ferry"}, 100)
            assert len(found) == len(set(found)) == len(accepted)
            assert not making.done()
    finally:
        making.cancel()


async def test_mail_behind_a_clock_that_was_ahead_is_found(harbor_and_quay: tuple[World, list[Team]]) -> None:
    """Blocks of the wrong time would hold all mail until that time comes."""
    pillarbox, teams = harbor_and_quay
    clock = clock_of(pillarbox)
    blocks = SearchBlocks(pillarbox.pool, pillarbox.clock, 4)
    for _ in range(9):
        await teams[0].send(subject="before")
    clock.advance(86400)
    for _ in range(9):
        await teams[0].send(subject="ahead")
    clock.advance(7200)
    await blocks.keep_up()
    assert await pillarbox.pool.fetchval("SELECT bool_and(is_settled) AND count(*) > 3 FROM search_blocks")
    clock.jump(-86400)
    late = await teams[0].send(subject="albatross")
    watch = pillarbox.app.need(ClockWatch)
    await watch.look()
    assert [str(one) for one in await all_pages(pillarbox, teams[0], {"subject": "albatross"}, 5)] == [
        str(late)
    ]
    assert len(await all_pages(pillarbox, teams[0], {"subject": "ahead"}, 50)) == 9
    clock.advance(2 * 86400)
    await blocks.keep_up()
    assert len(await all_pages(pillarbox, teams[0], {"subject": "albatross"}, 50)) == 1


async def test_blocks_of_another_release_are_read_whole_and_described_anew(
    harbor_and_quay: tuple[World, list[Team]],
) -> None:
    pillarbox, teams = harbor_and_quay
    for number in range(12):
        await teams[0].send(subject=f"ferry {number}")
    clock_of(pillarbox).advance(LATE.total_seconds() + 1)
    blocks = SearchBlocks(pillarbox.pool, pillarbox.clock, 4)
    await blocks.keep_up()
    await pillarbox.pool.execute("UPDATE search_blocks SET version = 1, bits = '\\x00', is_settled = true")
    assert len(await all_pages(pillarbox, teams[0], {"subject": "ferry"}, 50)) == 12
    assert await blocks.renew() == 3
    assert await blocks.renew() == 0
    assert len(await all_pages(pillarbox, teams[0], {"subject": "ferry"}, 50)) == 12
    assert await pillarbox.pool.fetchval("SELECT bool_and(is_settled AND version > 1) FROM search_blocks")
