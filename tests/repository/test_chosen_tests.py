"""Which tests a run leaves out (`kit.chosen_tests`)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest

@pytest.mark.slow
def test_slow() -> None: ...

@pytest.mark.sweep
def test_sweep() -> None: ...

def test_usual() -> None: ...
"""
PYTEST_INI = """
[tool.pytest.ini_options]
testpaths = ["tests"]
markers = ["slow: ", "sweep: "]
addopts = "-q -p no:cacheprovider"
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the setup of the tests, with one file of three tests."""
    (tmp_path / "pyproject.toml").write_text(PYTEST_INI, encoding="utf-8")
    (tmp_path / "tests" / "part").mkdir(parents=True)
    (tmp_path / "tests" / "conftest.py").symlink_to(ROOT / "tests" / "conftest.py")
    (tmp_path / "tests" / "part" / "test_three.py").write_text(TESTS, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "passed"),
    [
        ("", 1),
        ("-n2", 1),
        ("--sweeps -n2", 2),
        ("tests", 1),
        ("./tests/", 1),
        ("tests/part", 2),
        ("tests/part -n2", 2),
        ("tests/part/test_three.py::test_sweep", 1),
        ("--slow-of tests/part/test_three.py", 2),
        ("--slow", 3),
    ],
)
def test_a_run_leaves_out_what_it_was_not_asked_for(tree: Path, arguments: str, passed: int) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments.split()],
        cwd=tree,
        env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests'}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    summary = run.stdout.splitlines()[-1]
    assert (f"{passed} passed" in summary) is (passed > 0), run.stdout
