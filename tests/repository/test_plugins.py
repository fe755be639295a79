"""A slice plugs in beside the others, and one can be built alone."""

from __future__ import annotations

import ast
import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from typer.testing import CliRunner

import pillarbox.app
from kit.world import world
from kit.zone import Zone
from pillarbox.application import SLICES
from pillarbox.cli import program
from pillarbox.emails.integrity.reconcile import reconcile
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.http.files import Files
from pillarbox.kernel.observability.request_log import Journal
from pillarbox.kernel.settings.settings import settings_of
from pillarbox.kernel.slices import CircularNeedError, Externals, Kit, PartMissingError, Pools, Slice
from pillarbox.logs import plugin as logs
from pillarbox.logs.writing import RequestLog
from pillarbox.teams import plugin as teams
from pillarbox.teams.allowances import Allowances
from pillarbox.webhooks.bodies import Bodies, QueuedEvent
from repository.toy import CHANNEL, JOB, TOYS, Toys

APP = Path(pillarbox.app.__file__)
SOURCE = APP.parent
MOST_LINES = 150

QUEUE = """
    INSERT INTO jobs (team_id, id, kind, subject_id, due_at, created_at) VALUES ($1, $2, $3, $2, now(), now())
"""


def kit_of(*slices: Slice, parts: dict[type, object] | None = None) -> Kit:
    """A kit without database and network."""
    nobody: Any = SimpleNamespace()
    externals = Externals(SystemClock(), Zone(), lambda: 0.5, lambda names: None)
    return Kit(slices, settings_of({}), nobody, Pools(nobody, nobody), externals, parts)


async def test_a_toy_slice_plugs_in(database_url: str, tmp_path: Path) -> None:
    async with world(database_url, tmp_path, slices=(*SLICES, TOYS)) as pillarbox:
        app, team = pillarbox.app, await pillarbox.team()
        toys = app.need(Toys)
        await pillarbox.pool.execute(QUEUE, team.id, uuid4(), JOB)
        async with asyncio.timeout(20):
            await toys.looped.wait()
            await toys.painted.wait()
            await toys.counted.wait()
            while not toys.heard.is_set():
                await pillarbox.pool.execute("SELECT pg_notify($1, '')", CHANNEL)
                await asyncio.sleep(0.02)

        assert (await team.get("/toys")).json() == {"object": "toys", "steps": ["started"]}
        assert (await team.get("/toys/secret")).status_code == 404
        assert (await pillarbox.client(None).get("/toys")).status_code == 401
        described = (await pillarbox.client(None).get("/openapi.json")).json()
        assert "/toys" in described["paths"]
        assert "toy.made" in described["webhooks"]

        link, _ = app.need(Files).link("toy", team.id, uuid4())
        assert (await pillarbox.client(None).get(link)).text == "a to"

        event = QueuedEvent(uuid4(), "toy.made", SystemClock().now(), uuid4(), None, None)
        async with pillarbox.pool.acquire() as conn:
            data = await app.need(Bodies)._data(conn, team.id, [event])
        assert bytes(data[event.event_id]) == b'{"toy_id":"7"}'

        found = await reconcile(pillarbox.pool, 5, [i for one in app.kit.slices for i in one.invariants])
        assert [gap.sentence for gap in found.gaps] == ["The toy 7 is missing."]
        app.closing()
    assert toys.steps == ["started", "closing", "stopped"]


async def test_routes_are_opened_by_a_setting(database_url: str, tmp_path: Path) -> None:
    slices = (*SLICES, TOYS)
    async with world(database_url, tmp_path, started=False, slices=slices, hostname="toys.example") as it:
        team = await it.team()
        assert (await team.get("/toys/secret")).status_code == 200


def test_a_slice_brings_commands() -> None:
    done = CliRunner().invoke(program(slices=[TOYS]), ["toys"])
    assert (done.exit_code, done.stdout) == (0, "2 toys\n")


def test_one_slice_is_built_alone() -> None:
    kit = kit_of(logs.SLICE)
    assert kit.need(Journal) is kit.need(RequestLog)
    assert kit_of(teams.SLICE).find(Allowances) is not None
    assert kit.find(Allowances) is None


def test_a_part_that_is_handed_in_goes_before_what_a_slice_provides() -> None:
    ours = Allowances(1, 1)
    assert kit_of(teams.SLICE, parts={Allowances: ours}).need(Allowances) is ours


def test_a_part_that_nobody_provides_is_named_with_who_needs_it() -> None:
    with pytest.raises(PartMissingError, match="Toys needs Ids: nothing provides Ids here"):
        kit_of(TOYS).need(Toys)


def test_parts_that_need_each_other_are_named() -> None:
    made = Slice(name="round", provides={int: lambda kit: kit.need(str), str: lambda kit: kit.need(int)})
    with pytest.raises(CircularNeedError, match="int needs str needs int"):
        kit_of(made).need(int)


def test_two_slices_cannot_provide_the_same() -> None:
    with pytest.raises(ValueError, match="again provides Allowances, which another slice provides already"):
        kit_of(teams.SLICE, Slice(name="again", provides={Allowances: lambda _: None}))


def test_the_program_is_a_short_list_of_slices() -> None:
    text = APP.read_text()
    assert len(text.splitlines()) <= MOST_LINES
    imported = {
        f"{node.module}.{name.name}"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pillarbox")
        for name in node.names
    }
    allowed = ("pillarbox.kernel.slices.", "pillarbox.kernel.settings.", "pillarbox.kernel.process.runtime.")
    assert [name for name in imported if not name.endswith(".plugin") and not name.startswith(allowed)] == []


def test_every_plugin_is_in_the_list() -> None:
    plugins = {".".join(path.relative_to(SOURCE).parent.parts) for path in SOURCE.rglob("plugin.py")}
    listed = {line.split()[1] for line in APP.read_text().splitlines() if " import plugin as " in line}
    assert {name.removeprefix("pillarbox.") for name in listed} == plugins
    assert len(SLICES) == len(plugins)
