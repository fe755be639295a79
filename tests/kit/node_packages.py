"""npm programs that a test drives: what `requirements/node/NAME` pins, from the user's cache.

    packages("resend_sdk")                                    # the folder; skips where it is not installed
    run_node("resend_sdk", program, home, environment(home))  # runs a module of JavaScript; what it printed
    command("resend_cli", "resend")                           # how a program of node_modules/.bin is started

`script/node_packages.py NAME` installs (and `.ci/run` does, for all names); a test never fetches anything.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
OLDEST = 20
"""The major version of Node that the pinned packages begin to work with."""

PATIENCE = 120
GUARD = Path(__file__).with_name("loopback_only.cjs")


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("node_packages", ROOT / "script" / "node_packages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


script = _script()


def packages(name: str) -> Path:
    """Return the folder whose `node_modules` has the pinned packages; skip the test where it is missing."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed (Debian package nodejs)")
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    if int(version.strip("v\n").split(".")[0]) < OLDEST:
        pytest.skip(f"node {version.strip()} is older than {OLDEST}")
    folder = script.folder_of(name)
    if not script.is_installed(folder):
        pytest.skip(f"its npm packages are not installed (script/node_packages.py {name})")
    assert isinstance(folder, Path)
    return folder


def command(name: str, program: str) -> list[str]:
    """Return the command that starts a program of `node_modules/.bin`."""
    return ["node", str((packages(name) / "node_modules" / ".bin" / program).resolve())]


def environment(home: Path, **variables: str) -> dict[str, str]:
    """Return variables for a program of Node: a home of its own, and none of this user's settings."""
    kept = {key: os.environ[key] for key in ("PATH", "LANG") if key in os.environ}
    return {**kept, "HOME": str(home), "NO_COLOR": "1", "NODE_OPTIONS": f"--require {GUARD}", **variables}


def run_node(name: str, program: Path, home: Path, variables: dict[str, str]) -> str:
    """Run a module of JavaScript that imports the packages of that name; return what it printed."""
    # Node looks for packages beside the module, so the module lies beside a link to them.
    link, module = home / "node_modules", home / program.name
    if not link.exists():
        link.symlink_to(packages(name) / "node_modules")
    shutil.copy(program, module)
    done = subprocess.run(
        ["node", str(module)], cwd=home, env=variables, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout
