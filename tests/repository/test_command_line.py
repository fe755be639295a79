"""The command line: what the operator can mend ends in one sentence."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer import Context
from typer.core import TyperGroup
from typer.main import get_command

import pillarbox
from pillarbox.app import MANIFESTS
from pillarbox.cli import program
from pillarbox.kernel.observability import log
from pillarbox.kernel.process import database_start
from pillarbox.kernel.process.workers import StartError
from pillarbox.kernel.storage.data_folder import FolderError, read_note
from pillarbox.kernel.terminal.program import InstalledProgram, running
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


def test_the_version_is_an_option_too() -> None:
    assert pillarbox_command("--version").stdout == f"{pillarbox.__version__}\n"


def test_a_shell_completes_commands_and_options() -> None:
    """Of what is loaded when it is called, too."""

    def completed(line: str) -> list[str]:
        variables = {"_PILLARBOX_COMPLETE": "complete_bash", "COMP_WORDS": line}
        number = str(len(line.split(" ")) - 1)
        return pillarbox_command(**variables, COMP_CWORD=number, _TYPER_COMPLETE_ARGS=line).stdout.split()

    assert completed("pillarbox que") == ["queue"]
    assert sorted(completed("pillarbox queue re")) == ["resume", "retry"]
    assert completed("pillarbox queue retry --do") == ["--domain"]
    assert "--http" in completed("pillarbox serve --ht")
    # The shell is the one that the command was called from, which is none in a test.
    shown = pillarbox_command("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert "complete" in shown.stdout


def test_a_wrong_flag_value_is_one_sentence_and_status_2() -> None:
    done = pillarbox_command("serve", "--http", "nowhere")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "pillarbox: --http: 'nowhere' is not HOST:PORT, for example 127.0.0.1:8080.\n"


def test_an_unknown_variable_is_one_sentence_and_status_2() -> None:
    done = pillarbox_command("serve", PILLARBOX_HTPP="127.0.0.1:0")
    assert (done.returncode, done.stderr) == (2, "pillarbox: PILLARBOX_HTPP is not a setting of Pillarbox.\n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("serv", "No such command 'serv'. Did you mean 'serve'? `pillarbox --help` shows what there is."),
        (
            "serve --htp 127.0.0.1:1",
            "No such option: --htp (Possible options: --http, --lmtp, --smtp). "
            "`pillarbox serve --help` shows what there is.",
        ),
        (
            "teams creat",
            "No such command 'creat'. Did you mean 'create'? `pillarbox teams --help` shows what there is.",
        ),
        ("emails show", "Missing argument 'ID'. `pillarbox emails show --help` shows what there is."),
    ],
)
def test_a_wrong_command_line_is_one_line_and_status_2(arguments: str, sentence: str) -> None:
    done = pillarbox_command(*arguments.split())
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"pillarbox: {sentence}\n")


@pytest.mark.parametrize("arguments", [(), ("teams",)])
def test_a_group_without_a_command_shows_its_help(arguments: tuple[str, ...]) -> None:
    done = pillarbox_command(*arguments)
    assert done.returncode == 2
    assert "Commands" in done.stdout + done.stderr
    assert "pillarbox: " not in done.stderr


def test_every_command_says_what_it_is_for() -> None:
    """In the list of all, and once it is loaded, where a group may be of the parts of several slices."""
    whole = get_command(program())
    assert isinstance(whole, TyperGroup)
    context = Context(whole)
    silent = []
    for name in whole.list_commands(context):
        listed = whole.get_command(context, name)
        with running(InstalledProgram(MANIFESTS)):
            _, called, _ = whole.resolve_command(context, [name])
        inner = called.commands.values() if isinstance(called, TyperGroup) else ()
        silent += [f"{name} {one.name}" for one in (listed, called, *inner) if one is None or not one.help]
    assert silent == []


def test_a_port_below_1024_needs_a_right(tmp_path: Path) -> None:
    """Without the right, which root has, and which no user is given."""
    without = ["setpriv", "--bounding-set=-net_bind_service", "--inh-caps=-net_bind_service"]
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("needs setpriv, to give up a right of root")
    command = [
        sys.executable,
        "-P",
        "-m",
        "pillarbox",
        "serve",
        "--data",
        str(tmp_path),
        "--http",
        "127.0.0.1:80",
    ]
    done = subprocess.run(
        [*(without if os.geteuid() == 0 else ()), *command],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(TESTS.parent / "src")},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "pillarbox: Cannot listen on 127.0.0.1:80 (http): "
        "ports below 1024 need root or CAP_NET_BIND_SERVICE.\n"
    )


def test_a_command_says_what_is_wrong_with_the_data_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = pillarbox_command("queue", "--data", str(tmp_path / "file"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"pillarbox: There is no database in the data folder {tmp_path / 'file'}; ")
    assert done.stderr.count("\n") == 1
    done = pillarbox_command("serve", "--data", str(tmp_path / "file"), "--http", "127.0.0.1:0")
    assert (
        done.stderr == f"pillarbox: The data folder {tmp_path / 'file'} cannot be used: it is not a folder.\n"
    )


def test_a_data_folder_of_somebody_else_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run").mkdir()
    shut = tmp_path / "run" / "supervisor.json"
    shut.write_text("{}")
    if os.geteuid() == 0:
        # Root may read everything: the system's refusal is the same for the file and for its folder.
        monkeypatch.setattr(Path, "read_text", refused)
    else:
        shut.chmod(0)
    with pytest.raises(FolderError, match=r"^The data folder .* cannot be read: Permission denied\.$"):
        read_note(tmp_path)


def refused(*_: object, **__: object) -> str:
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def test_a_database_that_does_not_answer_is_named_once_while_it_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(database_start, "DATABASE_WAIT", 0.2)
    monkeypatch.setattr(database_start, "DATABASE_PAUSE", 0.01)
    log.configure("text", level="info")
    expected = "The database of --database-url cannot be reached: Connection refused."
    with pytest.raises(StartError, match=f"^{re.escape(expected)}$"):
        asyncio.run(database_start.connect_patiently("postgresql://ann@127.0.0.1:1/harbor"))
    (line,) = capfd.readouterr().err.splitlines()
    assert "database.waiting" in line


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
