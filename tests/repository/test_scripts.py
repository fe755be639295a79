"""The scripts on a clean checkout: as somebody who has only Python, twice, offline the second time."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEEDED = ("script", "src", "requirements", "pyproject.toml")
NO_NETWORK = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}


def checkout(folder: Path) -> Path:
    for name in NEEDED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, folder / name)
    return folder


def run(folder: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: text for name, text in os.environ.items() if not name.startswith(("PILLARBOX_", "PYTHON"))}
    return subprocess.run(
        [str(folder / command[0]), *command[1:]],
        env={**clean, **environment},
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.mark.parametrize(
    "script", ["server", "test", "lint", "bench", "docs", "pin", "bootstrap", "pillarbox"]
)
def test_a_script_is_plain_sh_that_can_be_run(script: str) -> None:
    path = ROOT / "script" / script
    assert os.access(path, os.X_OK)
    assert path.read_text().startswith("#!/bin/sh\n")
    assert subprocess.run(["sh", "-n", str(path)]).returncode == 0


def test_continuous_integration_runs_the_tests_and_passes_their_status() -> None:
    assert os.access(ROOT / ".ci/run", os.X_OK)
    last = (ROOT / ".ci/run").read_text().rstrip().splitlines()[-1]
    assert last.startswith("exec script/test ")
    assert last.endswith(' "$@"')


def test_without_a_usable_python_there_is_one_sentence(tmp_path: Path) -> None:
    folder = checkout(tmp_path)
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "dirname"):
        (tools / name).symlink_to(str(shutil.which(name)))
    done = run(folder, "script/bootstrap", "runtime", PATH=str(tools))
    assert done.returncode == 1
    assert done.stderr.startswith("Pillarbox needs Python 3.11 or newer")


@pytest.mark.slow
def test_a_clean_checkout_serves_and_needs_no_network_the_second_time(tmp_path: Path) -> None:
    folder = checkout(tmp_path)
    first = run(folder, "script/pillarbox", "version")
    assert first.returncode == 0, first.stderr
    second = run(folder, "script/pillarbox", "version", **NO_NETWORK)
    assert (second.returncode, second.stdout, second.stderr) == (0, first.stdout, "")


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() == 0, reason="root can write everywhere")
def test_a_checkout_that_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    folder = checkout(tmp_path / "checkout")
    folder.chmod(0o555)
    done = run(folder, "script/pillarbox", "version", XDG_CACHE_HOME=str(tmp_path / "cache"))
    folder.chmod(0o755)
    assert done.returncode == 0, done.stderr
    assert not (folder / ".venv").exists()
