"""No input keeps the event loop of a process from its other connections (API-09).

Generated from the route table, so a new slice is held by it without an edit: every route gets, in each field
of its body, the largest input of each shape that it reads. The two ways of mail by SMTP get messages of the
same kind. In the normal run they are small; `--slow` sends the largest that are allowed.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from uuid import uuid4

import httpx
import msgspec
import pytest

from kit.adversary import ATTACHMENTS, HTML, KIB, MESSAGES, MIB, STRINGS, VALUES, Sender, elsewhere, messages
from kit.brought import ROUTES
from kit.http_client import http_client
from kit.inbound_client import inbound_client, receiving_domain
from kit.submission import SubmissionPorts, submission
from kit.world import Team, World, mail
from pillarbox.kernel.http.routing import Route
from pillarbox.kernel.observability.loop_watchdog import LoopWatchdog, Stall
from pillarbox.receiving.receive import MOST_OCTETS as MOST_RECEIVED
from pillarbox.smtp.listeners import MOST_OCTETS as MOST_SUBMITTED

SMALL = 48 * KIB
MOST_HTML = 10 * MIB
MOST_ATTACHED = 30 * MIB
DECIDED = (250, 501, 550, 552, 553, 554)

ALLOWED = 0.2
SLACK = 2.0
"""On a busy machine the same work takes more processor time."""

BODIES = [route for route in ROUTES if route.takes_body]
BASES = {"/emails": mail(), "/emails/batch": mail(), "/templates": {"name": "T", "html": ""}}
"""What has to be there so that a field behind it is looked at."""


class Watch:
    """What the watchdog saw, and what was being answered then."""

    def __init__(self) -> None:
        self.now = ""
        self.stalls: list[tuple[str, Stall]] = []

    def tell(self, stall: Stall) -> None:
        self.stalls.append((self.now, stall))

    @property
    def long(self) -> list[str]:
        """Stalls that took this process's own time."""
        return [
            f"{name}: {stall.late:.2f} s, cpu {stall.cpu:.2f}, {' < '.join(stall.stack)}"
            for name, stall in self.stalls
            if min(stall.late, stall.process_cpu) > ALLOWED * SLACK
        ]


def calm_collector() -> None:
    """As in a worker: what the test session has loaded is not looked through again and again."""
    gc.collect()
    gc.freeze()


@asynccontextmanager
async def watched(pillarbox: World) -> AsyncIterator[Watch]:
    """Another client asks for `/health` all the while, and nobody holds up the loop."""
    watch = Watch()
    watchdog = LoopWatchdog("test", watch.tell)
    async with http_client(pillarbox.url, None) as client:
        calm_collector()
        watchdog.start()
        probing = asyncio.create_task(ask_again_and_again(client))
        yield watch
        # A stall at the very end is told by the next turn.
        await asyncio.sleep(0.15)
        assert not probing.done()
        probing.cancel()
        await asyncio.gather(probing, return_exceptions=True)
        watchdog.stop()
    assert not watch.long, "\n".join(watch.long)


async def ask_again_and_again(client: httpx.AsyncClient) -> None:
    while True:
        assert (await client.get("/health")).status_code == 200
        await asyncio.sleep(0.02)


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    with elsewhere() as made:
        yield made


@pytest.fixture(params=["small", pytest.param("largest", marks=pytest.mark.slow)])
def most(request: pytest.FixtureRequest) -> int | None:
    """Octets of an input; None for as many as are allowed."""
    return SMALL if request.param == "small" else None


def sender(pool: ProcessPoolExecutor, team: Team) -> Sender:
    return Sender(pool, int(team.world.url.rpartition(":")[2]), team.token)


def fields_of(route: Route) -> list[str]:
    """The fields of the body, as they are on the wire, and one that nobody knows."""
    kind = route.body
    if kind is not None and getattr(kind, "__origin__", None) is list:
        kind = kind.__args__[0]
    known = isinstance(kind, type) and issubclass(kind, msgspec.Struct)
    return [*([found.encode_name for found in msgspec.structs.fields(kind)] if known else []), "unknown"]


def path_of(route: Route) -> str:
    return route.path.format(**dict.fromkeys(route.parameters, str(uuid4())))


@pytest.fixture
def submission_ports(
    database_url: str, tmp_path: Path
) -> AbstractAsyncContextManager[tuple[Team, SubmissionPorts]]:
    return submission(database_url, tmp_path)


async def test_no_body_of_any_route_holds_up_the_loop(
    submission_ports: tuple[Team, SubmissionPorts], pool: ProcessPoolExecutor, most: int | None
) -> None:
    team, _ = submission_ports
    async with watched(team.world) as watch:
        client = sender(pool, team)
        for route in BODIES:
            size = min(most or route.limit, route.limit) - KIB
            fields = fields_of(route) if size <= MIB else ["unknown"]
            for turn, shape in enumerate(VALUES):
                # The small run has each shape in one of the fields.
                for name in fields if most is None else [fields[turn % len(fields)]]:
                    watch.now = f"{route.scope} {name} {shape}"
                    value, base = ("value", shape, size), BASES.get(route.path, {})
                    many = route.path == "/emails/batch"
                    status = await client.ask_with(route.method, path_of(route), base, name, value, many=many)
                    assert status < 500, watch.now


async def test_no_field_of_an_email_holds_up_the_loop(
    submission_ports: tuple[Team, SubmissionPorts], pool: ProcessPoolExecutor, most: int | None
) -> None:
    """The same for html and attachments that are accepted, stored and captured."""
    team, _ = submission_ports
    async with watched(team.world) as watch:
        client = sender(pool, team)
        good = [("html", "html", shape, (most or MOST_HTML) - KIB) for shape in HTML]
        good += [("attachments", "attachment", shape, most or MOST_ATTACHED) for shape in ATTACHMENTS]
        for name, kind, shape, size in good:
            watch.now = f"{kind} {shape}"
            status = await client.ask_with("POST", "/emails", mail(), name, (kind, shape, size), many=False)
            assert status == 200, watch.now


async def test_no_template_holds_up_the_loop(
    submission_ports: tuple[Team, SubmissionPorts], pool: ProcessPoolExecutor, most: int | None
) -> None:
    """Checked, published, and made into mail; more placeholders than a part may have are refused."""
    team, _ = submission_ports
    async with watched(team.world) as watch:
        client = sender(pool, team)
        variables = [{"key": "A", "type": "string", "fallback_value": "b"}]
        base = {"name": "T", "from": mail()["from"], "subject": "T", "variables": variables}
        for number, shape in enumerate(HTML):
            watch.now = f"template {shape}"
            named = base | {"alias": f"t{number}"}
            # As JSON some of it is twice as long.
            value = "html", shape, (most or MOST_HTML // 2) - KIB
            status = await client.ask_with("POST", "/templates", named, "html", value, many=False)
            assert status == (422 if shape == "placeholders" else 201), watch.now
            if status == 201:
                await team.post(f"/templates/t{number}/publish")
                use = {"to": "ada@quay.example", "template": {"id": f"t{number}"}}
                assert (await team.post("/emails", use)).status_code == 200, watch.now


@pytest.mark.slow
async def test_no_long_string_in_an_email_holds_up_the_loop(
    submission_ports: tuple[Team, SubmissionPorts], pool: ProcessPoolExecutor
) -> None:
    """The largest body there is, in each field of it."""
    team, _ = submission_ports
    async with watched(team.world) as watch:
        client = sender(pool, team)
        send = next(route for route in ROUTES if route.scope == "POST /emails")
        for name in fields_of(send):
            for shape in STRINGS:
                watch.now = f"{name} {shape}"
                value = "value", shape, send.limit - KIB
                assert await client.ask_with("POST", "/emails", mail(), name, value, many=False) < 500


async def test_no_query_holds_up_the_loop(
    database_url: str, tmp_path: Path, pool: ProcessPoolExecutor
) -> None:
    """Heads are small whatever is asked."""
    values = {
        "one": "a" * 7000,
        "many": "&".join(f"a{n}" for n in range(1300)),
        "commas": "," * 7000,
        "percent": "%41" * 2300,
        "dots": "." * 7000,
    }
    unlogged = submission(database_url, tmp_path, log_retention_days="0")
    async with unlogged as (team, _), watched(team.world) as watch:
        client = sender(pool, team)
        for route in ROUTES:
            names = [*route.query, "unknown"]
            for turn, (shape, value) in enumerate(values.items()):
                watch.now = f"{route.scope} {shape}"
                path = f"{path_of(route)}?{names[turn % len(names)]}={value}"
                assert await client.ask(route.method, path) < 500, watch.now


async def test_no_submitted_message_holds_up_the_loop(
    submission_ports: tuple[Team, SubmissionPorts], pool: ProcessPoolExecutor, most: int | None
) -> None:
    team, listeners = submission_ports
    async with watched(team.world) as watch:
        client = sender(pool, team)
        for kind, shape in messages():
            watch.now = f"{kind} {shape}"
            spec = kind, shape, most or MOST_SUBMITTED - KIB
            assert await client.submit(listeners.submission, "ben@quay.example", spec) in DECIDED, watch.now


async def test_no_received_message_holds_up_the_loop(
    submission_ports: tuple[Team, SubmissionPorts], pool: ProcessPoolExecutor, most: int | None
) -> None:
    """Received, and read again by the API."""
    team, _ = submission_ports
    await receiving_domain(team)
    async with inbound_client(team.world) as post, watched(team.world) as watch:
        reader = sender(pool, team)
        client = Sender(pool, post.port, None)
        for kind, shape in messages():
            watch.now = f"{kind} {shape}"
            spec = kind, shape, most or MOST_RECEIVED - KIB
            code = await client.submit(post.port, "help@harbor.example", spec)
            assert code in DECIDED, watch.now
            if code == 250:
                [email] = (await team.get("/emails/receiving?limit=1")).json()["data"]
                watch.now = f"reading {kind} {shape}"
                assert await reader.ask("GET", f"/emails/receiving/{email['id']}") == 200


def test_the_shapes_are_as_large_as_they_are_said_to_be() -> None:
    for name, shape in {**VALUES, **MESSAGES, **ATTACHMENTS}.items():
        assert SMALL * 0.9 < len(shape(SMALL)) <= SMALL, name
