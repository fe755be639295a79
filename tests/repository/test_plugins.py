"""A slice plugs in beside the others, and one can be built alone."""

from __future__ import annotations

import ast
import asyncio
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest
from typer.testing import CliRunner

import pillarbox.app
from kit.world import world
from kit.zone import Zone
from pillarbox.app import MANIFESTS
from pillarbox.application import SLICES
from pillarbox.cli import COMMANDS, program
from pillarbox.emails.integrity.reconcile import reconcile
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.http.files import FileLinks
from pillarbox.kernel.http.request import Html
from pillarbox.kernel.manifests import SliceManifest, settings_in
from pillarbox.kernel.observability.request_log import RequestLogWriter
from pillarbox.kernel.security.sealed_values import counted
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.settings.page import settings_page
from pillarbox.kernel.settings.settings import settings_of
from pillarbox.kernel.slices import CircularNeedError, Container, Externals, PartMissingError, Pools, Slice
from pillarbox.kernel.work.retention_page import retention_page
from pillarbox.logs import plugin as logs
from pillarbox.logs.writing import RequestLog
from pillarbox.teams import plugin as teams
from pillarbox.teams.allowances import Allowances
from pillarbox.webhooks.bodies import QueuedEvent, WebhookBodies
from repository.toys.manifest import MANIFEST
from repository.toys.plugin import CHANNEL, JOB, SECRETS, Toys
from repository.toys.plugin import SLICE as TOYS
from repository.toys.settings import TOY_COLOUR

APP = Path(pillarbox.app.__file__)
SOURCE = APP.parent
MOST_LINES = 150

TOYS_TABLE = Path(__file__).parent / "toys" / "toys.sql"

QUEUE = """
    INSERT INTO jobs (team_id, id, kind, subject_id, due_at, created_at) VALUES ($1, $2, $3, $2, now(), now())
"""


def kit_of(*slices: Slice, parts: dict[type, object] | None = None) -> Container:
    """A kit without database and network."""
    nobody: Any = SimpleNamespace()
    externals = Externals(SystemClock(), Zone(), lambda: 0.5, lambda names: None)
    return Container(slices, settings_of({}), nobody, Pools(nobody, nobody), externals, parts)


async def test_a_toy_slice_plugs_in(database_url: str, tmp_path: Path) -> None:
    async with world(database_url, tmp_path, slices=(*SLICES, TOYS), toy_colour="blue") as pillarbox:
        app, team = pillarbox.app, await pillarbox.team()
        toys = app.need(Toys)
        await pillarbox.pool.execute(QUEUE, team.id, uuid4(), JOB)
        async with asyncio.timeout(20):
            await toys.looped.wait()
            await toys.painted.wait()
            await toys.counted.wait()
            await toys.removed.wait()
            while not toys.heard.is_set():
                await pillarbox.pool.execute("SELECT pg_notify($1, '')", CHANNEL)
                await asyncio.sleep(0.02)

        assert (await team.get("/toys")).json() == {"object": "toys", "steps": ["started"]}
        assert (await pillarbox.client(None).get("/toys/shelf")).text == "<p>blue</p>"
        for closed in ("/toys/secret", "/toys/cupboard"):
            assert (await team.get(closed)).status_code == 404
        assert (await pillarbox.client(None).get("/toys")).status_code == 401
        described = (await pillarbox.client(None).get("/openapi.json")).json()
        assert {"/toys", "/toys/shelf"} <= described["paths"].keys()
        assert "toy.made" in described["webhooks"]

        kim = "kim@quay.example"
        assert (await team.get(f"/personal-data/{kim}")).json()["toys"] == [{"owner": kim}]
        erasure = (await team.post(f"/personal-data/{kim}/erase")).json()["id"]
        async with asyncio.timeout(20):
            while (found := (await team.get(f"/personal-data/erasures/{erasure}")).json())[
                "status"
            ] != "completed":
                await asyncio.sleep(0.05)
        assert found["rows"] >= 1

        link, _ = app.need(FileLinks).link("toy", team.id, uuid4())
        assert (await pillarbox.client(None).get(link)).text == "a to"

        event = QueuedEvent(
            event_id=uuid4(),
            kind="toy.made",
            at=SystemClock().now(),
            subject_id=uuid4(),
            position=None,
            detail=None,
        )
        async with pillarbox.pool.acquire() as conn:
            data = await app.need(WebhookBodies).data_of(conn, team.id, [event])
        assert bytes(data[event.event_id]) == b'{"toy_id":"7"}'

        found = await reconcile(pillarbox.pool, 5, [i for one in app.kit.slices for i in one.invariants])
        assert [gap.sentence for gap in found.gaps] == ["The toy 7 is missing."]
        app.closing()
    assert toys.steps == ["started", "closing", "stopped"]


async def test_routes_are_opened_by_a_setting(database_url: str, tmp_path: Path) -> None:
    slices = (*SLICES, TOYS)
    async with world(database_url, tmp_path, started=False, slices=slices, hostname="toys.example") as it:
        team = await it.team()
        for opened in ("/toys/secret", "/toys/cupboard"):
            assert (await team.get(opened)).status_code == 200


def test_the_toys_bring_one_of_every_field() -> None:
    """A field that is new belongs into the toys, and what is done with it into a test here."""
    empty: dict[type, object] = {
        Slice: Slice(name="", opens=TOYS.opens),
        SliceManifest: SliceManifest(name="", plugin=MANIFEST.plugin),
    }
    for brought in (TOYS, MANIFEST):
        nothing = empty[type(brought)]
        missing = [
            one.name
            for one in fields(brought)
            if one.name not in ("opens", "plugin")
            and getattr(brought, one.name) == getattr(nothing, one.name)
        ]
        assert missing == []


def test_a_slice_brings_commands_and_settings() -> None:
    line = program([MANIFEST])
    assert CliRunner().invoke(line, ["toys", "count"]).stdout == "2 toys\n"
    assert (
        CliRunner().invoke(line, ["toys", "colour"], env={"PILLARBOX_TOY_COLOUR": "blue"}).stdout == "blue\n"
    )
    shown = CliRunner().invoke(line, ["serve", "--help"], env={"COLUMNS": "200", "TERMINAL_WIDTH": "200"})
    assert "--toy-colour" in shown.stdout
    assert "## Toys" in settings_page([MANIFEST])


def test_a_secret_of_a_slice_is_not_shown() -> None:
    settings = settings_of({"toy_colour": "blue"}, settings_in([MANIFEST]))
    assert settings[TOY_COLOUR] == "blue"
    assert "toy_colour" in settings.secret
    assert "toy_colour" not in settings.public


def test_what_a_slice_deletes_with_age_is_listed() -> None:
    page = retention_page([TOYS])
    assert "| toys | `--toy-days` (default 7) |\n" in page
    assert "| broken toys | 2 hours |\n" in page


async def test_what_a_slice_seals_is_opened_and_sealed_again(database_url: str) -> None:
    first, second = KeyRing.parse(KeyRing.generate_text()), KeyRing.parse(KeyRing.generate_text())
    team, toy = UUID(int=1), UUID(int=2)
    columns = [column for one in (*SLICES, TOYS) for column in one.sealed]
    sealed = first.seal(b"button", SECRETS.context(toy))
    async with asyncpg.create_pool(database_url, min_size=1, max_size=2) as pool:
        await pool.execute(TOYS_TABLE.read_text(encoding="utf-8"))
        await pool.execute("INSERT INTO toys VALUES ($1, $2, 'bear', $3)", team, toy, sealed)
        (unopened,) = (await counted(pool, columns, second)).unopened
        assert (unopened.column, unopened.owner) == (SECRETS, "bear")
        assert (await counted(pool, columns, first)).unopened == []


def test_a_group_may_be_brought_in_parts() -> None:
    line = program()
    shown = CliRunner().invoke(line, ["emails", "--help"]).stdout
    assert "List emails, and show what became of one." in shown
    assert "list" in shown
    assert "show" in shown


@pytest.mark.parametrize(
    "name", [name for one in (COMMANDS, *(one.commands for one in MANIFESTS)) for name in one]
)
def test_the_list_of_commands_says_what_the_command_says(name: str) -> None:
    """The list is shown without loading the commands, so it has lines of its own."""
    (said, *_) = [one[name] for one in (COMMANDS, *(found.commands for found in MANIFESTS)) if name in one]
    shown = CliRunner().invoke(program(), [name, "--help"], env={"COLUMNS": "200", "TERMINAL_WIDTH": "200"})
    assert said.help in shown.stdout


def test_one_command_cannot_come_from_two_slices() -> None:
    twice = SliceManifest(name="twice", plugin=MANIFEST.plugin, commands={"version": COMMANDS["version"]})
    with pytest.raises(ValueError, match="two slices bring the command version"):
        program([twice])


def test_one_name_cannot_be_two_settings() -> None:
    with pytest.raises(ValueError, match="two settings have the name toy_colour"):
        settings_in([MANIFEST, MANIFEST])


def test_a_page_is_for_a_browser() -> None:
    with pytest.raises(ValueError, match="toys: /toys is a page, and a browser brings no API key"):
        replace(TOYS, pages=TOYS.routes)


def test_what_answers_with_a_page_is_a_page() -> None:
    routes = [route for one in SLICES for route in (*one.routes, *one.closed_routes)]
    assert [route.path for route in routes if route.reply is Html] == []


def test_one_slice_is_built_alone() -> None:
    kit = kit_of(logs.SLICE)
    assert kit.need(RequestLogWriter) is kit.need(RequestLog)
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
    assert [one for one in imported if not one.endswith(".manifest") and "kernel.manifests" not in one] == []


def test_every_slice_is_in_the_list() -> None:
    plugins, manifests = (
        {".".join(path.relative_to(SOURCE).parent.parts) for path in SOURCE.rglob(name)}
        for name in ("plugin.py", "manifest.py")
    )
    lines = APP.read_text().splitlines()
    listed = {line.split()[1].removeprefix("pillarbox.") for line in lines if " import manifest as " in line}
    assert listed == manifests == plugins
    assert len(MANIFESTS) == len(plugins)
    assert [one.name for one in SLICES] == [one.name for one in MANIFESTS]


def test_the_list_loads_nothing_of_the_program() -> None:
    """So that `pillarbox --help` comes at once, and the supervisor stays small."""
    code = "import sys, pillarbox.app; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    loaded = {name for name in done.stdout.split() if name.startswith("pillarbox.")}
    light = (".settings", ".manifest", ".manifests")
    slices = {name for name in loaded if name.count(".") > 1 and not name.startswith("pillarbox.kernel.")}
    assert {name for name in slices if not name.endswith(light) and name + ".manifest" not in loaded} == set()
    assert not {"asyncpg", "typer", "starlette", "cryptography"} & set(done.stdout.split())
