"""What programs cost: tokens a second from the token endpoint, and the processor time of a request with an
access token beside the same one with an API key.

Each program refreshes one after another on a connection that stays, as rotation asks for. The requests of the
API are of the cheapest kind, in turns, so that what differs shows.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final
from uuid import UUID, uuid4

import aiohttp

from bench.kit import load
from bench.kit.processes import cpu_seconds, running_seconds, tree
from bench.kit.results import Report, at_least, at_most, ended
from bench.kit.server import KEY, Server, serving
from pillarbox.oauth.clients.clients import hashed

CLIENT: Final = "7136aa0b-625c-4c9c-8820-e9784c8eb141"
"""The built-in one."""

CONNECTIONS: Final = 32
TURNS: Final = 9
SECONDS: Final = 5
SECONDS_SHORT: Final = 1
READ: Final = "/topics?limit=1"
SNAPSHOT: Final = {
    "name": "Command line",
    "redirect_uris": ["http://127.0.0.1/oauth/callback"],
    "grant_types": ["authorization_code", "refresh_token"],
    "token_endpoint_auth_method": "none",
    "scopes": ["full_access", "emails:send"],
    "client_uri": None,
    "logo_uri": None,
    "host": None,
    "is_verified": False,
}

PERSON = """
    INSERT INTO people (id, email, email_key, created_at)
    VALUES ($1, 'ada@bench.example', 'ada@bench.example', now())
"""
MEMBER = """
    INSERT INTO team_members (team_id, id, email, created_at, person_id, role)
    VALUES ($1, $2, 'ada@bench.example', now(), $2, 'owner')
"""
GRANT = """
    INSERT INTO oauth_grants (team_id, id, client_id, client, person_id, scopes, created_at)
    VALUES ($1, $2, $3, $4::json, $5, '{full_access,emails:send}', now())
"""
TOKEN = """
    INSERT INTO oauth_refresh_tokens (hash, team_id, grant_id, client_id, created_at, expires_at)
    VALUES ($1, $2, $3, $4, now(), now() + interval '60 days')
"""


@dataclass(slots=True)
class Program:
    """A program with a grant, and its newest tokens."""

    refresh_token: str
    access_token: str = ""
    refreshed: int = 0


def measure(report: Report) -> None:
    with serving(report, report.folder / "data", roles="api") as server:
        programs = granted(server, CONNECTIONS)
        seconds = SECONDS_SHORT if report.short else SECONDS
        asyncio.run(refreshing(server, programs, 1.0))
        tokens(report, server, programs, seconds * 3)
        calls(report, server, programs[0].access_token, seconds)


def tokens(report: Report, server: Server, programs: Sequence[Program], seconds: float) -> None:
    """The rate of the token endpoint, and that each answer was right."""
    processes = tree(server.process.pid)
    made = server.number("SELECT count(*) FROM oauth_refresh_tokens")
    used = cpu_seconds(processes.workers), cpu_seconds(processes.postgres)
    before = sum(one.refreshed for one in programs)
    times, took = asyncio.run(refreshing(server, programs, seconds))
    count = sum(one.refreshed for one in programs) - before
    ours = (cpu_seconds(processes.workers) - used[0]) / count * 1000
    theirs = (cpu_seconds(processes.postgres) - used[1]) / count * 1000
    p50, p99 = (load.percentile(times, at) * 1000 for at in (50, 99))
    note = (
        f"p50 {p50:.1f} ms, p99 {p99:.1f} ms; processor time {ours:.2f} ms, of the database {theirs:.2f} ms"
    )
    report.result(
        f"tokens by refresh, {len(programs)} programs", count / took, "/s", at_least(300), note=note
    )
    if (more := server.number("SELECT count(*) FROM oauth_refresh_tokens") - made) != count:
        report.fault(f"{count} answers left {more:.0f} refresh tokens")


def calls(report: Report, server: Server, access_token: str, seconds: int) -> None:
    """The median of what a request with either credential costs, turn by turn."""
    requests = load.reads(report.folder / "reads.txt", [READ])
    costs: dict[str, list[float]] = {KEY: [], access_token: []}
    for turn in range(TURNS):
        for credential in list(costs)[:: 1 if turn % 2 else -1]:
            workers = tree(server.process.pid).workers
            before = sum(running_seconds(pid) for pid in workers)
            seen = load.wrk(server, requests, connections=8, seconds=seconds, key=credential, threads=1)
            used = sum(running_seconds(pid) for pid in workers) - before
            if seen.trouble:
                report.fault(f"calls: {seen.trouble}")
            if turn:
                costs[credential].append(used / seen.requests * 1e6)
    by_key, by_token = (median(costs[credential]) for credential in (KEY, access_token))
    report.result("a call by API key", by_key, "µs", note="processor time of the workers")
    report.result("a call by access token", by_token, "µs", note="processor time of the workers")
    report.result("access token beyond API key", by_token - by_key, "µs", at_most(60))


def granted(server: Server, count: int) -> list[Program]:
    """Programs that a person lets act in the first team."""
    team, person = UUID(str(server.sql("SELECT id FROM teams")[0][0])), uuid4()
    server.sql(PERSON, person)
    server.sql(MEMBER, team, person)
    return asyncio.run(_granted(server, team, person, count))


async def _granted(server: Server, team: UUID, person: UUID, count: int) -> list[Program]:
    conn = await server.connect()
    try:
        made = []
        for _ in range(count):
            grant, text = uuid4(), secrets.token_urlsafe(32)
            await conn.execute(GRANT, team, grant, CLIENT, json.dumps(SNAPSHOT), person)
            await conn.execute(TOKEN, hashed(text), team, grant, CLIENT)
            made.append(Program(text))
        return made
    finally:
        await conn.close()


async def refreshing(
    server: Server, programs: Sequence[Program], seconds: float
) -> tuple[list[float], float]:
    """All programs refresh for some seconds; returns how long each answer took, and all together."""
    times: list[float] = []
    began = time.perf_counter()

    async def refresh(session: aiohttp.ClientSession, program: Program) -> None:
        while time.perf_counter() < began + seconds:
            asked = time.perf_counter()
            form = {
                "grant_type": "refresh_token",
                "refresh_token": program.refresh_token,
                "client_id": CLIENT,
            }
            async with session.post(f"{server.url}/oauth/token", data=form) as answer:
                found = await answer.json()
            times.append(time.perf_counter() - asked)
            program.refresh_token, program.access_token = found["refresh_token"], found["access_token"]
            program.refreshed += 1

    connector = aiohttp.TCPConnector(limit=len(programs))
    async with aiohttp.ClientSession(connector=connector) as session:
        await asyncio.gather(*[refresh(session, program) for program in programs])
    return times, time.perf_counter() - began


if __name__ == "__main__":
    ended("oauth", measure, __doc__)
