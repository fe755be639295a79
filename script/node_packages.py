#!/usr/bin/env python3
"""Installs npm packages by their pins, for tests that drive foreign clients and servers.

    script/node_packages.py NAME...         install what requirements/node/NAME pins; prints a folder a line
    script/node_packages.py --where NAME    the folder where it is or would be
    script/node_packages.py --pin NAME      write package-lock.json anew from package.json

`requirements/node/NAME/package.json` names exact versions. The lock beside it has every package with its
integrity sum and no address of a registry: npm asks the registry that its own configuration names, and
refuses what has another sum. No install script runs. The folder lies in the user's cache and is named after
the pins, so another pin is another folder. The exit status is 3 where npm or a registry is missing.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from bootstrap import cache_folder

PINS = Path(__file__).resolve().parent.parent / "requirements" / "node"
FILES = ("package.json", "package-lock.json")
DROPPED = ("license", "funding", "engines", "deprecated", "hasInstallScript")
"""What npm writes into a lock and needs for nothing, addresses of sponsors among it."""

QUIET = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")
UNAVAILABLE = 3
PATIENCE = 240


def folder_of(name: str, pins: Path = PINS) -> Path:
    """Return the folder where the packages of that name are or will be."""
    digest = hashlib.sha256()
    for file in FILES:
        digest.update((pins / name / file).read_bytes())
    return cache_folder() / "pillarbox" / "node" / f"{name}-{digest.hexdigest()[:16]}"


def is_installed(folder: Path) -> bool:
    return (folder / "node_modules").is_dir()


def install(name: str, pins: Path = PINS) -> str | None:
    """Put the packages where `folder_of` says; return None, or why it could not be done."""
    folder = folder_of(name, pins)
    if is_installed(folder):
        return None
    if shutil.which("npm") is None:
        return "npm is not installed"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{name}-", dir=folder.parent) as scratch:
        made = Path(scratch) / "made"
        made.mkdir()
        for file in FILES:
            shutil.copy(pins / name / file, made / file)
        if why := failure("npm", "ci", *QUIET, at=made):
            return why
        # Somebody else may have been faster; what they made is the same.
        if not is_installed(folder):
            made.rename(folder)
    return None


def failure(*command: str, at: Path) -> str | None:
    """Run a command; return None when it ends well, else the first lines that it said."""
    try:
        done = subprocess.run(
            command,
            cwd=at,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env={**os.environ, "NO_COLOR": "1"},
        )
    except subprocess.TimeoutExpired:
        return f"{' '.join(command[:2])} took more than {PATIENCE} s"
    said = [line for line in done.stderr.splitlines() if "complete log" not in line]
    return None if done.returncode == 0 else " ".join(said[:4]) or "npm failed"


def pin(name: str) -> str | None:
    """Write the lock of that name from its package.json; return None, or why it could not be done."""
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copy(PINS / name / "package.json", scratch)
        flags = ("--package-lock-only", "--omit-lockfile-registry-resolved", *QUIET)
        if why := failure("npm", "install", *flags, at=Path(scratch)):
            return why
        lock = json.loads((Path(scratch) / "package-lock.json").read_text())
    lock["packages"] = {
        path: {key: value for key, value in entry.items() if key not in DROPPED}
        for path, entry in lock["packages"].items()
    }
    (PINS / name / "package-lock.json").write_text(json.dumps(lock, indent=2) + "\n")
    return None


def main(arguments: list[str]) -> int:
    option = arguments.pop(0) if arguments and arguments[0].startswith("--") else ""
    if not arguments or option not in ("", "--where", "--pin"):
        print(__doc__)
        return 2
    for name in arguments:
        if option == "--where":
            print(folder_of(name))
            continue
        why = pin(name) if option == "--pin" else install(name)
        if why:
            print(f"{name}: {why}", file=sys.stderr)
            return UNAVAILABLE
        if not option:
            print(folder_of(name))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
