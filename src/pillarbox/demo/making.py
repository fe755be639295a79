"""Making the demo's team: its month happens in a database of its own, and then its rows are copied."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from functools import partial
from typing import Final, NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.application import App
from pillarbox.demo import team_queries as queries
from pillarbox.demo.broadcasts import plan_newsletters
from pillarbox.demo.contacts import ShopAudience
from pillarbox.demo.inbox_mail import plan_letters
from pillarbox.demo.month import SENDING_CLIENT, DemoMonth
from pillarbox.demo.network_simulation import ClosedDns, DemoPoster
from pillarbox.demo.orders import plan_orders
from pillarbox.demo.process_requests import ProcessClient
from pillarbox.demo.schedule import WHOLE, MonthSize, SeededRandom
from pillarbox.demo.set_up import BROKEN_RECORDS, receiver_answer, set_up
from pillarbox.demo.shop import OWNER, OWNER_LOCAL, TEAM
from pillarbox.demo.simulation_clock import ScriptedClock
from pillarbox.demo.simulation_database import copy_link_keys, simulation_application
from pillarbox.demo.team_queries import MarkedTeam
from pillarbox.domains.settings import SIMULATOR_DOMAINS
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import transaction
from pillarbox.kernel.settings.settings import Settings
from pillarbox.kernel.wire.email_address import email_address
from pillarbox.people import accounts
from pillarbox.people.passwords import Passwords
from pillarbox.people.roles import TeamRole
from pillarbox.teams import bootstrap
from pillarbox.teams.team import DEMO_MARK

MARK: Final = DEMO_MARK
"""The last eight octets of the ids of the demo's team and account."""

SEED: Final = 30
LATEST: Final = timedelta(minutes=3)
"""The last thing in the month happens so long before now."""

SHOP_AGENT: Final = "resend-node:6.1.2"
OFFICE_AGENT: Final = "resend-python:2.16.0"
SHOP_KEY: Final = {"name": "Shop backend", "permission": "sending_access"}


class NoSimulator(Exception):  # noqa: N818 - said to the operator as a sentence
    """The installation has no simulator, so mail of a demo would leave it."""


class DemoTeam(NamedTuple):
    """The team with what its visitor needs; `password` and `token` are nowhere else."""

    id: UUID
    name: str
    email: str
    password: str
    token: str


async def find_demo(pool: asyncpg.Pool) -> MarkedTeam | None:
    """Return the demo's team, if there is one."""
    return await queries.marked_team(pool, MARK)


async def is_in_use(pool: asyncpg.Pool) -> bool:
    """Return whether somebody works with the installation: it has several teams, or mail."""
    return await queries.is_in_use(pool)


async def make_demo(
    pool: asyncpg.Pool, settings: Settings, now: datetime, size: MonthSize = WHOLE
) -> DemoTeam:
    """Make the demo's team with its month until `now`. Raises NoSimulator.

    Until the last moment nothing is written into the installation but that a number of a team is used up;
    then all rows come in one transaction.
    """
    simulators = settings[SIMULATOR_DOMAINS]
    if not simulators:
        raise NoSimulator
    simulator = min(simulators)
    # A comparison with the thirty days before finds nothing there.
    first = now - timedelta(days=size.days - 1)
    start = first.replace(hour=6, minute=0, second=0, microsecond=0)
    clock = ScriptedClock(start)
    poster = DemoPoster(clock, SeededRandom(SEED), partial(receiver_answer, now))
    dns = ClosedDns({simulator: f"v=spf1 ip4:{SENDING_CLIENT} -all", **BROKEN_RECORDS}, {})
    async with simulation_application(settings, pool, clock, dns, poster, SEED) as app:
        demo = await _team(app, clock, f"{OWNER_LOCAL}@{simulator}")
        office = ProcessClient(app.asgi, demo.token, OFFICE_AGENT)
        shop_key = await office.call("POST", "/api-keys", SHOP_KEY)
        month = DemoMonth(
            app=app,
            clock=clock,
            chance=SeededRandom(SEED),
            team_id=demo.id,
            shop=ProcessClient(app.asgi, shop_key["token"], SHOP_AGENT),
            office=office,
            simulator=simulator,
            start=start,
            end=now - LATEST,
            size=size,
        )
        audience = ShopAudience(month.chance, size.contacts, simulator)
        await set_up(month, audience)
        plan_orders(month, audience)
        plan_newsletters(month, audience)
        plan_letters(month, audience)
        await month.run()
        await _bring(app.kit.pool, pool, demo.id)
    return demo


async def _team(app: App, clock: ScriptedClock, address: str) -> DemoTeam:
    """Make the team and its owner's account, whose ids carry the mark."""
    marked = Ids(clock, lambda count: MARK[:count])
    pool = app.kit.pool
    team = await bootstrap.create_team(pool, name=TEAM, email=address, ids=marked)
    password = secrets.token_urlsafe(12)
    hashed = await app.need(Passwords).hashed(password)
    async with transaction(pool) as conn:
        person_id = await accounts.create(conn, marked.stamp(), email_address(address), OWNER)
        owner = email_address(address)
        await accounts.join(conn, marked.stamp(), person_id, owner, team.id, TeamRole.OWNER)
        await accounts.set_password(conn, clock.now(), person_id, hashed)
    return DemoTeam(id=team.id, name=TEAM, email=address, password=password, token=team.token)


async def _bring(source: asyncpg.Pool, target: asyncpg.Pool, team_id: UUID) -> None:
    """Copy the team with all of its rows, in one transaction."""
    if await queries.blobs(source, team_id):
        raise ValueError("the demo has blobs, which nobody copies")
    async with source.acquire() as old, transaction(target) as new:
        await copy_link_keys(old, new)
        await queries.copy_team(old, new, team_id)
        await queries.copy_people(old, new)
        for table in await queries.tables(old):
            await queries.copy(old, new, table, team_id)
