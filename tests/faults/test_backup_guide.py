"""The commands of docs/guide/backup.md and upgrade.md, as they stand there, on a running server."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from kit.backups import PASSPHRASE
from kit.process import environment, served
from pillarbox.kernel.settings.settings import PASSPHRASE_VARIABLE

pytestmark = pytest.mark.sweep

GUIDE = Path(__file__).parents[2] / "docs" / "guide"
BLOCK = re.compile(r"(?s)```sh\n(.*?)```")


def commands(page: str) -> list[str]:
    """The lines of a page that call `pillarbox`."""
    text = (GUIDE / page).read_text(encoding="utf-8")
    lines = [line for block in BLOCK.findall(text) for line in block.splitlines()]
    return [line for line in lines if line.startswith("script/pillarbox ")]


@pytest.mark.parametrize("page", ["backup.md", "upgrade.md"])
def test_the_guide_can_be_followed(page: str, tmp_path: Path) -> None:
    """OPS-05."""
    places = {"/backup/pillarbox": tmp_path / "target", "pillarbox-data": tmp_path / "data"}
    places["restored"] = tmp_path / "restored"
    followed = commands(page)
    assert followed
    with served(tmp_path / "data", route="capture"):
        for line in followed:
            words = [str(places.get(word, word)) for word in shlex.split(line)[1:]]
            if words[0] == str(places["restored"]):
                words[0] = "restored"
            done = subprocess.run(
                [sys.executable, "-m", "pillarbox", *words],
                capture_output=True,
                text=True,
                env=environment() | {PASSPHRASE_VARIABLE: PASSPHRASE},
            )
            if line.endswith("drop --mail --yes --data restored"):
                assert "Nothing is put aside." in done.stderr, done
            else:
                assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
