"""The wheel: `pip install` gives the program that a checkout runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path

import pytest

from kit.process import Lines
from repository.test_bootstrap import script_module
from repository.test_scripts import ROOT, checkout

TIMEOUT = 60
PYTHON = getattr(sys, "_base_executable", sys.executable)
"""The system's, which has pip."""


def has_pip() -> bool:
    return subprocess.run([PYTHON, "-m", "pip", "--version"], capture_output=True).returncode == 0


def sources() -> set[str]:
    """The files of the program, as a wheel names them."""
    whole = ROOT / "src/pillarbox"
    links = [path for path in whole.rglob("*") if path.is_symlink()]
    found = [path for place in (whole, *links) for path in place.glob("**/*")]
    return {str(path.relative_to(ROOT / "src")) for path in found if path.is_file() and path.suffix != ".pyc"}


def test_the_bounds_of_the_package_follow_from_the_pins() -> None:
    texts = [(ROOT / "requirements" / name).read_text() for name in ("runtime.in", "runtime.txt")]
    written = (ROOT / "requirements/package.txt").read_text()
    assert script_module("package_bounds").bounds(*texts) == written, "run script/pin"


@pytest.mark.parametrize(
    ("wanted", "pinned", "expected"),
    [
        ("anchor", "anchor==3.2.1 \\", "anchor>=3.2.1,<4"),
        ("anchor<3.5", "anchor==3.2.1 \\", "anchor>=3.2.1,<3.5"),
        ("anchor", "anchor==0.7.0 \\", "anchor>=0.7.0,<1"),
        ("tzdata", "tzdata==2026.6 \\", "tzdata>=2026.6"),
    ],
)
def test_a_bound(wanted: str, pinned: str, expected: str) -> None:
    made = script_module("package_bounds").bounds(f"# why\n{wanted}\n", f"{pinned}\n    --hash=sha256:1\n")
    assert made.splitlines()[1:] == [expected]


def built(folder: Path) -> Path:
    """The wheel of this tree."""
    tree = checkout(folder / "tree")
    for name in ("README.md", "LICENSE"):
        shutil.copy2(ROOT / name, tree)
    command = [PYTHON, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder / "dist"), str(tree)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    (wheel,) = (folder / "dist").iterdir()
    return wheel


@pytest.mark.slow
@pytest.mark.skipif(not has_pip(), reason="this Python has no pip to build a wheel with")
def test_the_wheel_holds_the_program_and_sends_a_first_mail_elsewhere(tmp_path: Path) -> None:
    wheel = built(tmp_path)
    with zipfile.ZipFile(wheel) as file:
        held = {name for name in file.namelist() if ".dist-info/" not in name}
    assert held == sources()
    assert "pillarbox/dashboard/docs/guide/index.md" in held
    assert "pillarbox/dashboard/docs/images/capture.png" in held
    place = tmp_path / "its own environment"
    subprocess.run([PYTHON, "-m", "venv", str(place)], check=True)
    install = [str(place / "bin/pip"), "install", "-q", "--disable-pip-version-check", str(wheel)]
    subprocess.run(install, check=True, stdin=subprocess.DEVNULL)
    assert first_mail(str(place / "bin/pillarbox"), tmp_path / "elsewhere") == ["Test mail from Pillarbox"]


def first_mail(program: str, folder: Path) -> list[str]:
    """Start the program in a folder, send a mail with it; the subjects of the captured mails."""
    folder.mkdir()
    around = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    flags = ["--http", "127.0.0.1:0", "--smtp", "off", "--submission", "off", "--processes", "1"]
    server = subprocess.Popen(
        [program, "serve", *flags],
        cwd=folder,
        env=around,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        said = Lines(server.stdout)
        said.wait_for("ready ")
        (key,) = re.findall(r"^api key (re_\S+)", "\n".join(said.all), re.M)
        link = said.wait_for("capture ").removeprefix("capture ")
        send = subprocess.run(
            [program, "send"],
            cwd=folder,
            env={**around, "RESEND_API_KEY": key},
            capture_output=True,
            text=True,
        )
        assert send.returncode == 0, send.stderr
        address, _, token = link.partition("?token=")
        request = urllib.request.Request(f"{address}.json", headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            return [mail["subject"] for mail in json.load(answer)["data"]]
    finally:
        server.terminate()
        server.wait(TIMEOUT)
