"""The command line: what the operator can mend ends in one sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pillarbox
from repository.running import TESTS


def pillarbox_command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: text for name, text in os.environ.items() if not name.startswith("PILLARBOX_")}
    clean["PYTHONPATH"] = str(TESTS.parent / "src")
    return subprocess.run(
        [sys.executable, "-P", "-m", "pillarbox", *arguments],
        env={**clean, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_version() -> None:
    assert pillarbox_command("version").stdout == f"{pillarbox.__version__}\n"


def test_a_wrong_flag_value_is_one_sentence_and_status_2() -> None:
    done = pillarbox_command("serve", "--http", "nowhere")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "pillarbox: --http: 'nowhere' is not HOST:PORT, for example 127.0.0.1:8080.\n"


def test_an_unknown_variable_is_one_sentence_and_status_2() -> None:
    done = pillarbox_command("serve", PILLARBOX_HTPP="127.0.0.1:0")
    assert (done.returncode, done.stderr) == (2, "pillarbox: PILLARBOX_HTPP is not a setting of Pillarbox.\n")


def test_every_setting_is_an_option_of_serve() -> None:
    from pillarbox.app import SETTINGS

    shown = pillarbox_command("serve", "--help", COLUMNS="200", TERMINAL_WIDTH="200").stdout
    assert [setting.flag for setting in SETTINGS if setting.flag not in shown] == []


def test_a_data_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = pillarbox_command("serve", "--data", str(tmp_path / "file" / "data"), "--http", "127.0.0.1:0")
    assert done.returncode == 1
    assert done.stderr == (
        f"pillarbox: The data folder {tmp_path / 'file' / 'data'} cannot be used: Not a directory.\n"
    )
