"""The examples of CONTRIBUTING.md work as they stand there: an endpoint, a field and a screen in ten minutes.

Their steps are followed on a copy of the tree, and the tests that they write are run against the copy.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
MIGRATIONS = ROOT / "src/pillarbox/schema/migrations"
ENDPOINT = "\n## Add an endpoint in ten minutes\n"
FIELD = "\n## Add a field in ten minutes\n"
SCREEN = "\n## Add a screen in ten minutes\n"
COPIED = (
    "src",
    "tests/kit",
    "tests/conftest.py",
    "tests/api/test_cross_team.py",
    "tests/repository/test_constructors.py",
    "tests/repository/test_contract_fields.py",
    "tests/repository/test_migration_rules.py",
    "tests/schema/test_schema.py",
    "docs/contract",
)
TEST = "tests/api/test_api_key_example.py"
MATRIX = "tests/api/test_cross_team.py::test_every_route_has_what_the_matrix_needs"

MIGRATION = "src/pillarbox/schema/migrations/NNNN_color_of_topics.sql"
FIELD_TEST = "tests/api/test_topic_example.py"
SCREEN_TEST = "tests/dashboard/test_example_screens.py"
SCREEN_TESTS = (
    SCREEN_TEST,
    "tests/people/test_texts.py",
    "tests/people/test_languages.py",
    "tests/dashboard/test_screen_matrix.py",
)
SHOWS = """
from pillarbox.application import SLICES
from pillarbox.dashboard.frame.screen_table import screens_of
from pillarbox.dashboard.texts import t
handlers = [route.handler for entry in SLICES for route in entry.pages]
print([t(entry.title) for entry in screens_of(handlers) if entry.path == "/dashboard/example"])
"""

MOST_EDITS = 9
"""Places in `src` that a new nullable field needs."""

STEP = re.compile(
    r"(?P<where>[Aa]t the end of|among the imports of|[Ii]n the new file|In)\s+`(?P<path>[\w/.-]+)`:\n\n"
    r"(?P<indent> *)```\w+\n(?P<block>.*?)\n(?P=indent)```\n",
    re.DOTALL,
)


class Step(NamedTuple):
    """Text that goes into a file."""

    where: str
    path: str
    text: str

    def apply(self, tree: Path) -> None:
        file = tree / self.path.replace("NNNN", f"{len(list(MIGRATIONS.glob('*.sql'))) + 1:04}")
        match self.where.lower():
            case "in the new file":
                assert not file.exists()
                file.parent.mkdir(exist_ok=True)
                file.write_text(self.text, encoding="utf-8")
            case "at the end of":
                gap = "\n\n" if file.suffix == ".py" else ""
                file.write_text(file.read_text(encoding="utf-8") + gap + self.text, encoding="utf-8")
            case "in":
                text, (before, after) = file.read_text(encoding="utf-8"), self.change()
                assert text.count(before) == 1, f"{self.path} must have this once:\n{before}"
                file.write_text(text.replace(before, after), encoding="utf-8")
            case _:
                before, first, after = file.read_text(encoding="utf-8").partition("\nfrom pillarbox")
                assert first
                file.write_text(f"{before}\n{self.text.rstrip()}{first}{after}", encoding="utf-8")

    def change(self) -> tuple[str, str]:
        """Return the lines of a diff as they are before it and after it."""
        lines = [(line[:1], line[1:] + "\n") for line in self.text.splitlines()]
        return (
            "".join(line for sign, line in lines if sign != "+"),
            "".join(line for sign, line in lines if sign != "-"),
        )


def section(title: str) -> str:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return page.partition(title)[2].partition("\n## ")[0]


def steps(title: str) -> list[Step]:
    return [
        Step(found["where"], found["path"], without_indent(found["block"], found["indent"]))
        for found in STEP.finditer(section(title))
    ]


def without_indent(block: str, indent: str) -> str:
    return "".join(line.removeprefix(indent) + "\n" for line in block.split("\n"))


def run(tree: Path, *arguments: str) -> None:
    """A module of Python in the tree, with a status of 0."""
    done = subprocess.run(
        [sys.executable, "-m", *arguments], cwd=tree, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def check_format(tree: Path, title: str) -> None:
    """The changed modules have the order of imports and the format that the lint asks for."""
    changed = sorted({step.path for step in steps(title) if step.path.endswith(".py")})
    run(tree, "ruff", "check", "--no-cache", "--quiet", "--select", "I", "--fix", *changed)
    run(tree, "ruff", "check", "--no-cache", "--quiet", *changed)
    run(tree, "ruff", "format", "--no-cache", "--check", "--quiet", *changed)


def test_no_step_is_left_out() -> None:
    """Each block of code is one of the steps, and each step says where it goes."""
    assert [step.path for step in steps(ENDPOINT)] == [
        "src/pillarbox/api_keys/queries.py",
        "src/pillarbox/api_keys/wire.py",
        "src/pillarbox/api_keys/routes.py",
        "src/pillarbox/api_keys/routes.py",
        TEST,
        "docs/contract/api-keys.md",
    ]
    for title in (ENDPOINT, FIELD, SCREEN):
        assert section(title).count("```") == 2 * len(steps(title))


def test_a_field_needs_few_edits() -> None:
    edits = [step.path for step in steps(FIELD) if step.path.startswith("src/")]
    assert len(edits) <= MOST_EDITS
    assert {MIGRATION, "src/pillarbox/schema/schema.sql", "src/pillarbox/topics/queries.py"} < set(edits)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what the example needs, with compiled modules, whose times stay right."""
    copy = tmp_path / "tree"
    for name in COPIED:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name)
        else:
            shutil.copy(ROOT / name, copy / name)
    shutil.copy(ROOT / "pyproject.toml", copy)
    return copy


@pytest.mark.slow
def test_the_endpoint_works_in_a_copy_of_the_tree(tree: Path) -> None:
    """And it is known to the matrix of teams."""
    for step in steps(ENDPOINT):
        step.apply(tree)
    check_format(tree, ENDPOINT)
    run(tree, "pytest", "-n0", TEST, MATRIX, "tests/repository/test_constructors.py")


def test_the_field_works_in_a_copy_of_the_tree(tree: Path) -> None:
    """Its migration leads to the schema, and the contract names it."""
    for step in steps(FIELD):
        step.apply(tree)
    check_format(tree, FIELD)
    run(tree, "pytest", "-n0", FIELD_TEST, "tests/schema", "tests/repository")


@pytest.fixture
def dashboard(tmp_path: Path) -> Path:
    """A tree whose dashboard is a copy; everything else of it is linked."""
    copy = tmp_path / "tree"
    link_all("src/pillarbox", copy, but="dashboard")
    link_all("tests", copy, but="dashboard")
    link_all("tests/dashboard", copy)
    shutil.copytree(ROOT / "src/pillarbox/dashboard", copy / "src/pillarbox/dashboard")
    shutil.copy(ROOT / "pyproject.toml", copy)
    return copy


def link_all(folder: str, copy: Path, but: str = "") -> None:
    (copy / folder).mkdir(parents=True)
    for entry in (ROOT / folder).iterdir():
        if entry.name not in (but, "__pycache__"):
            (copy / folder / entry.name).symlink_to(entry)


def test_the_screen_is_in_the_table(dashboard: Path) -> None:
    for step in steps(SCREEN):
        step.apply(dashboard)
    check_format(dashboard, SCREEN)
    done = subprocess.run(
        [sys.executable, "-c", SHOWS],
        cwd=dashboard,
        env={"PYTHONPATH": "src"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.stdout == "['Example']\n", done.stderr


@pytest.mark.slow
def test_the_screen_works_beside_a_copy_of_the_dashboard(dashboard: Path) -> None:
    """And it is known to the matrix of roles and teams."""
    for step in steps(SCREEN):
        step.apply(dashboard)
    run(dashboard, "pytest", "-n0", *SCREEN_TESTS)
