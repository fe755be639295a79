"""A slice is added by its folder, a line of the list, a migration and its place among the layers.

The toys are added to a copy of the tree, as a person would add them, and the copy is run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pillarbox.kernel.postgres.migrations import FOLDER

ROOT = Path(__file__).parents[2]
COPIED = (
    "src",
    "tests/kit",
    "tests/conftest.py",
    "tests/schema/test_schema.py",
    "tests/repository/test_imports.py",
)
SCHEMA = "src/pillarbox/schema"

STORY = '''"""Toys in the program."""

from __future__ import annotations

from pathlib import Path

from kit.world import world


async def test_toys_are_served(database_url: str, tmp_path: Path) -> None:
    async with world(database_url, tmp_path) as pillarbox:
        team = await pillarbox.team()
        assert (await team.get("/toys")).json() == {"object": "toys", "steps": ["started"]}
        assert (await pillarbox.client(None).get("/toys/shelf")).text == "<p>red</p>"
        assert await pillarbox.pool.fetchval("SELECT count(*) FROM toys") == 0
'''


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the program with the toys in it."""
    copy = tmp_path_factory.mktemp("tree")
    for name in COPIED:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, symlinks=True)
        else:
            shutil.copy(ROOT / name, copy / name)
    shutil.copy(ROOT / "pyproject.toml", copy)
    add_toys(copy)
    return copy


def add_toys(tree: Path) -> None:
    """All that there is to do."""
    toys = Path(__file__).parent / "toys"
    shutil.copytree(toys, tree / "src/pillarbox/toys", ignore=shutil.ignore_patterns("*.sql", "__pycache__"))
    edit(
        tree / "src/pillarbox/app.py",
        (
            "\nfrom pillarbox.timeline import",
            "\nfrom pillarbox.toys import manifest as toys\nfrom pillarbox.timeline import",
        ),
        ("    usage.MANIFEST,\n", "    usage.MANIFEST,\n    toys.MANIFEST,\n"),
    )
    table = (toys / "toys.sql").read_text()
    number = len(list(FOLDER.glob("*.sql"))) + 1
    (tree / SCHEMA / f"migrations/{number:04}_toys.sql").write_text(table)
    with (tree / SCHEMA / "schema.sql").open("a") as file:
        file.write(table)
    edit(tree / "pyproject.toml", ('    "(timeline)",\n', '    "(timeline) : (toys)",\n'))


def edit(path: Path, *changes: tuple[str, str]) -> None:
    text = path.read_text()
    for before, after in changes:
        assert text.count(before) == 1
        text = text.replace(before, after)
    path.write_text(text)


def run(tree: Path, *arguments: str, **environment: str) -> str:
    """What a module of Python in the tree says."""
    clean = {name: text for name, text in os.environ.items() if not name.startswith("PILLARBOX_")}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=tree,
        env={
            **clean,
            "PYTHONPATH": str(tree / "src"),
            "COLUMNS": "200",
            "TERMINAL_WIDTH": "200",
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_nothing_else_was_touched(tree: Path) -> None:
    ours, theirs = contents(ROOT), contents(tree)
    touched = {path for path in theirs if theirs[path] != ours.get(path)}
    assert {path for path in touched if not path.startswith(("src/pillarbox/toys/", f"{SCHEMA}/"))} == {
        "src/pillarbox/app.py",
        "pyproject.toml",
    }


def contents(tree: Path) -> dict[str, bytes]:
    files = [tree / "pyproject.toml", *(path for path in (tree / "src").rglob("*") if path.is_file())]
    kept = [path for path in files if "__pycache__" not in path.parts and ".egg-info" not in str(path)]
    return {str(path.relative_to(tree)): path.read_bytes() for path in kept}


def test_its_commands_and_settings_are_there(tree: Path) -> None:
    assert "Count and paint toys." in run(tree, "-P", "-m", "pillarbox", "--help")
    assert run(tree, "-P", "-m", "pillarbox", "toys", "colour", PILLARBOX_TOY_COLOUR="blue") == "blue\n"
    assert "--toy-colour" in run(tree, "-P", "-m", "pillarbox", "serve", "--help")


@pytest.mark.slow
def test_it_runs_in_the_program(tree: Path) -> None:
    """With the schema that its migration leads to, and no import upwards."""
    story = tree / "tests/test_toys.py"
    story.write_text(STORY)
    run(tree, "-m", "pytest", "-n0", "tests/test_toys.py", "tests/schema", "tests/repository/test_imports.py")
    story.unlink()
    contracts = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    run(tree, "-c", contracts, "--no-cache")
