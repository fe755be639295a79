"""Mail servers that do anything: every recipient ends as their replies imply, and nobody harms others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from kit.ledger import (
    Comparison,
    Journal,
    State,
    acknowledged,
    arrivals,
    compare,
    last_words,
    lines_of,
    open_work,
    states,
)
from kit.load import LoadClient, to_each
from kit.process import KEY, connected, ended, first_team, reconciled, worker_processes
from kit.remote_servers import Behaviour, RemoteServers, remote_servers
from kit.zone import Zone, serve_zone

pytestmark = pytest.mark.sweep

SEED = 20

CHAOS: Mapping[str, list[tuple[float, str]]] = {
    "CONNECT": [(0.05, "421 4.3.2 too busy"), (0.05, "554 5.7.1 go away"), (0.05, "drop"), (0.03, "garbage")],
    "EHLO": [(0.03, "drop"), (0.05, "huge"), (0.03, "421 4.7.0 not now")],
    "MAIL": [
        (0.05, "451 4.3.0 later"),
        (0.05, "tarpit:0.2"),
        (0.03, "garbage"),
        (0.03, "550 5.7.1 not from you"),
    ],
    "RCPT": [
        (0.1, "450 4.2.0 later"),
        (0.1, "550 5.1.1 no such user"),
        (0.05, "greylist"),
        (0.03, "drop"),
        (0.03, "early"),
        (0.05, "huge"),
        (0.03, "554 5.7.1 refused by policy"),
    ],
    "DATA": [(0.05, "451 4.3.0 later"), (0.03, "drop"), (0.03, "early"), (0.03, "554 5.5.1 no")],
    "DOT": [
        (0.05, "451 4.3.0 later"),
        (0.05, "554 5.6.0 refused content"),
        (0.05, "take and drop"),
        (0.05, "drop"),
        (0.05, "tarpit:0.3"),
        (0.03, "garbage"),
        (0.03, "huge"),
        (0.03, "endless"),
        (0.03, "421 4.3.2 shutting down"),
    ],
}
"""What a server with moods does, by command and probability."""

FIXED: Mapping[str, tuple[Behaviour, set[str]]] = {
    "good": ({}, {"delivered"}),
    "greylists": ({"RCPT": "greylist"}, {"delivered"}),
    "drips": ({"CONNECT": "tarpit:0.3", "EHLO": "tarpit:0.3", "DOT": "tarpit:0.5"}, {"delivered"}),
    "talks": ({"EHLO": "huge", "MAIL": "huge", "RCPT": "huge", "DOT": "huge"}, {"delivered"}),
    "knows-nobody": ({"RCPT": "550 5.1.1 no such user"}, {"bounced"}),
    "dislikes-us": ({"MAIL": "554 5.7.1 your network is blocked"}, {"bounced"}),
    "dislikes-it": ({"DOT": "554 5.6.0 we do not want this"}, {"bounced"}),
    "is-full": ({"RCPT": "452 4.2.2 mailbox full"}, {"bounced"}),
    "hangs-up": ({"DATA": "drop"}, {"bounced"}),
    "babbles": ({"CONNECT": "garbage"}, {"failed"}),
    "refuses-connections": ({"CONNECT": "554 5.3.2 no service"}, {"failed"}),
    "never-ends": ({"RCPT": "endless"}, {"bounced"}),
    "answers-early": ({"DATA": "early"}, {"bounced"}),
}
"""Servers that never change, and how their recipients end: what was never offered a mail cannot bounce it."""

NOBODY = "is-not-there"


@dataclass
class World:
    """Far servers behind a zone, two workers and a client."""

    courier: LoadClient
    far: RemoteServers
    url: str
    zone: Zone

    async def known(self) -> list[State]:
        async with connected(self.url) as conn:
            return await states(conn)

    async def compared(self) -> Comparison:
        async with connected(self.url) as conn:
            assert await open_work(conn) == 0
        found = compare(
            acknowledged(self.courier.journal.path), arrivals(self.far.journal), await self.known()
        )
        print(f"\n{found}; {self.courier.tally}")
        return found


@asynccontextmanager
async def among(
    url: str, folder: Path, tempers: Mapping[str, Behaviour | None], *, workers: int = 2
) -> AsyncIterator[World]:
    """A zone in which every name has a mail server with this temper; None: an address without one."""
    zone = Zone()
    servers = {}
    for number, (name, temper) in enumerate(tempers.items()):
        address = f"127.{1 + number // 200}.0.{1 + number % 200}"
        zone.add(name, "MX", f"10 mx.{name}")
        zone.add(f"mx.{name}", "A", address)
        if temper is not None:
            servers[address] = temper
    await first_team(url)
    async with serve_zone(zone) as (host, port):
        with remote_servers(folder / "far", servers, seed=SEED) as far:
            settings = {
                "route": "direct",
                "dns": f"{host}:{port}",
                "remote_smtp_port": str(far.port),
                "allow_private": "127.0.0.0/8",
            }
            with worker_processes(url, folder, **settings) as house:
                for place in range(workers):
                    await asyncio.to_thread(house.start, place=place)
                async with LoadClient(house.at, KEY, Journal(folder / "ledger")) as courier:
                    yield World(courier, far, url, zone)


def names(count: int) -> dict[str, Behaviour | None]:
    """The fixed servers, one address without a server, and servers with moods up to `count`."""
    made: dict[str, Behaviour | None] = {f"{name}.example": temper for name, (temper, _) in FIXED.items()}
    made[f"{NOBODY}.example"] = None
    made.update({f"moody{number}.example": CHAOS for number in range(count - len(made))})
    return made


def implied(state: State, words: Mapping[str, str]) -> set[str]:
    """The ends that a recipient may have, by the server it has, or by that server's last reply."""
    name = state.recipient.rpartition("@")[2].removesuffix(".example")
    if name == NOBODY:
        return {"failed"}
    if name in FIXED:
        return FIXED[name][1]
    said = words.get(state.recipient)
    return {"taken": {"delivered"}, "refused": {"bounced"}}.get(said or "", {"bounced", "failed"})


@pytest.mark.parametrize(
    ("count", "mails", "tries"), [(40, 1, 2), pytest.param(500, 3, 4, marks=pytest.mark.slow)]
)
async def test_every_recipient_ends_as_its_server_implies(
    database_url: str, tmp_path: Path, count: int, mails: int, tries: int
) -> None:
    """OUT-06, OUT-08, OUT-09, DUR-04: whatever servers say and do, and however often they are asked."""
    tempers = names(count)
    async with among(database_url, tmp_path, tempers) as at:
        await at.courier.post_many(count * mails, 300, to_each(tempers))
        await ended(database_url, 60 + count, hurries=tries)
        words = last_words(at.far.journal)
        wrong = [
            f"{state.recipient} is {state.state}, its server last said {words.get(state.recipient)}"
            for state in await at.known()
            if state.state not in implied(state, words)
        ]
        assert not wrong, "\n".join(wrong)
        found = await at.compared()
        assert found.accepted == count * mails
        assert not found.lost
        in_doubt = {
            (arrival.token, arrival.recipient) for arrival in arrivals(at.far.journal) if not arrival.answered
        }
        assert found.doubled.keys() <= in_doubt
    await reconciled(database_url)


DELAYS = """
    SELECT split_part(r.address, '@', 2) AS name, max(t.at - e.created_at) AS longest, count(*)
      FROM timeline t
      JOIN emails e ON e.team_id = t.team_id AND e.id = t.email_id
      JOIN recipients r ON r.team_id = t.team_id AND r.email_id = t.email_id
     WHERE t.kind = 'delivered'
     GROUP BY 1
"""

BAD: Mapping[str, Behaviour | None] = {
    "silent": {"CONNECT": "silent"},
    "gone": None,
    "slow": {"MAIL": "tarpit:1", "DOT": "tarpit:1"},
}
NOTHING = (0, timedelta(0))


@pytest.mark.parametrize("count", [700, pytest.param(20_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(("silent", "gone", "slow"), id="all", marks=pytest.mark.slow),
        pytest.param(("silent",), id="silent"),
    ],
)
async def test_dead_and_slow_destinations_do_not_harm_a_good_one(
    database_url: str, tmp_path: Path, count: int, bad: tuple[str, ...]
) -> None:
    """OUT-11, architecture 2.5: more mails than the engine holds wait for silent, lost or slow servers."""
    tempers = {f"{name}.example": BAD[name] for name in bad}
    async with among(database_url, tmp_path, {**tempers, "good.example": {}}, workers=1) as at:
        await at.courier.post_many(count, 1000, to_each(tempers))
        await at.courier.post_many(40, 20, to_each(["good.example"]))
        async with connected(database_url) as conn, asyncio.timeout(30):
            rows: dict[str, tuple[int, timedelta]] = {}
            while rows.get("good.example", NOTHING)[0] < 40:
                rows = {row["name"]: (row["count"], row["longest"]) for row in await conn.fetch(DELAYS)}
                await asyncio.sleep(0.1)
        print(f"\n{rows}")
        assert rows["good.example"][1] < timedelta(seconds=3)
        at.far.stop()


WARM_UP = 120.0
WATCHED = 60.0
ALLOWED = 2
PROVIDER: Behaviour = {"CONNECT": "at most 5", "MAIL": f"{ALLOWED} a second"}


@pytest.mark.slow
async def test_a_provider_with_limits_gets_nearly_what_it_allows(database_url: str, tmp_path: Path) -> None:
    """OUT-12: five connections and two mails a second; at least 80 % of the rate, at most 5 % refused."""
    async with among(database_url, tmp_path, {"provider.example": PROVIDER}, workers=1) as at:
        await at.courier.post_many(800, 400, to_each(["provider.example"]))
        began = time.time()
        await asyncio.sleep(WARM_UP + WATCHED)
        lines = [line for line in lines_of(at.far.journal) if line.get("at", 0) >= began + WARM_UP]
        taken = sum(line["kind"] == "taken" for line in lines)
        limited = sum(line["kind"] == "limited" for line in lines)
        print(f"\n{taken} taken and {limited} refused in {WATCHED:.0f} s after {WARM_UP:.0f} s")
        assert taken >= 0.8 * ALLOWED * WATCHED
        assert limited <= 0.05 * (taken + limited)
        at.far.stop()
