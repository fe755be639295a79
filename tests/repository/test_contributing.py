"""The example "Add an endpoint in ten minutes" of CONTRIBUTING.md works as it stands there.

Its steps are followed on a copy of the tree, and the test that it writes is run against the copy.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
TITLE = "\n## Add an endpoint in ten minutes\n"
COPIED = ("src", "tests/kit", "tests/conftest.py", "tests/api/test_cross_team.py", "docs/contract")
TEST = "tests/api/test_api_key_example.py"
MATRIX = "tests/api/test_cross_team.py::test_every_route_has_what_the_matrix_needs"

STEP = re.compile(
    r"(?P<where>[Aa]t the end of|among the imports of|[Ii]n the new file)\s+`(?P<path>[\w/.-]+)`:\n\n"
    r"(?P<indent> *)```\w+\n(?P<block>.*?)\n(?P=indent)```\n",
    re.DOTALL,
)


class Step(NamedTuple):
    """Text that goes into a file."""

    where: str
    path: str
    text: str

    def apply(self, tree: Path) -> None:
        file = tree / self.path
        match self.where.lower():
            case "in the new file":
                assert not file.exists()
                file.write_text(self.text, encoding="utf-8")
            case "at the end of":
                gap = "\n\n" if file.suffix == ".py" else ""
                file.write_text(file.read_text(encoding="utf-8") + gap + self.text, encoding="utf-8")
            case _:
                before, first, after = file.read_text(encoding="utf-8").partition("\nfrom pillarbox")
                assert first
                file.write_text(f"{before}\n{self.text.rstrip()}{first}{after}", encoding="utf-8")


def section() -> str:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return page.partition(TITLE)[2].partition("\n## ")[0]


def steps() -> list[Step]:
    return [
        Step(found["where"], found["path"], textwrap.dedent(found["block"]) + "\n")
        for found in STEP.finditer(section())
    ]


def run(tree: Path, *arguments: str) -> None:
    """A module of Python in the tree, with a status of 0."""
    done = subprocess.run(
        [sys.executable, "-m", *arguments], cwd=tree, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_step_is_left_out() -> None:
    """Each block of code is one of the steps, and each step says where it goes."""
    assert [step.path for step in steps()] == [
        "src/pillarbox/api_keys/queries.py",
        "src/pillarbox/api_keys/wire.py",
        "src/pillarbox/api_keys/routes.py",
        "src/pillarbox/api_keys/routes.py",
        TEST,
        "docs/contract/api-keys.md",
    ]
    assert section().count("```") == 2 * len(steps())


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


def test_the_endpoint_works_in_a_copy_of_the_tree(tree: Path) -> None:
    """With the order of imports and the format that the lint asks for, and known to the matrix of teams."""
    for step in steps():
        step.apply(tree)
    changed = sorted({step.path for step in steps() if step.path.endswith(".py")})
    run(tree, "ruff", "check", "--no-cache", "--quiet", "--select", "I", "--fix", *changed)
    run(tree, "ruff", "check", "--no-cache", "--quiet", *changed)
    run(tree, "ruff", "format", "--no-cache", "--check", "--quiet", *changed)
    run(tree, "pytest", "-n0", TEST, MATRIX)
