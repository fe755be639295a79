"""The command line: what the slices bring, and here the commands that are about the whole program.

Begin with `serve.py`. Each other module is one command, of the name that it has in `COMMANDS`.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import Command, CommandGroup, SliceManifest
from pillarbox.kernel.process.fork_server_channel import FACTORY, ForkServerProcess, started

if TYPE_CHECKING:
    import typer

WRONG_SETTING = 2
FAILED = 1
INTERRUPTED = 130
"""The status of a program that Ctrl-C ended."""


def program(manifests: Sequence[SliceManifest] | None = None) -> typer.Typer:
    """Return the command line of these slices, else of all; each command is loaded when it is called."""
    from pillarbox.app import MANIFESTS
    from pillarbox.kernel.terminal.loading import command_line
    from pillarbox.kernel.terminal.program import InstalledProgram

    return command_line(InstalledProgram(MANIFESTS if manifests is None else manifests), COMMANDS.items())


def _serve() -> Callable[..., None]:
    from pillarbox.cli import serve
    from pillarbox.kernel.terminal.program import running_program

    return serve.command_of(running_program().settings)


def _mcp() -> Callable[..., None]:
    from pillarbox.cli.stdio_bridge import command

    return command


def _send() -> Callable[..., None]:
    from pillarbox.cli.send import command

    return command


def _verify() -> Callable[..., None]:
    from pillarbox.cli.verify import command

    return command


def _demo() -> Callable[..., None]:
    from pillarbox.cli.demo import command

    return command


def _doctor() -> Callable[..., None]:
    from pillarbox.cli.doctor import command

    return command


def _version() -> Callable[..., None]:
    from pillarbox.cli.version import command

    return command


def _backup() -> Callable[..., None]:
    from pillarbox.cli.backups.backup import command

    return command


def _restore() -> Callable[..., None]:
    from pillarbox.cli.backups.restore import command

    return command


def _restored() -> typer.Typer:
    from pillarbox.cli.backups.restored import group

    return group


def _upgrade() -> Callable[..., None]:
    from pillarbox.cli.backups.upgrade import command

    return command


COMMANDS: dict[str, Command | CommandGroup] = {
    "serve": Command("Run Pillarbox: database, API, delivery and background work, until a signal.", _serve),
    "send": Command("Send a test mail through the running server and follow what becomes of it.", _send),
    "mcp": Command("Serve the tools of the running server (MCP) by standard input and output.", _mcp),
    "verify": Command(
        "Reconcile emails, recipients, work, history, metrics, webhooks, kept answers, secrets and blobs; "
        "name every gap.",
        _verify,
    ),
    "doctor": Command(
        "Find out whether this machine can deliver and receive mail, and what to do where it cannot.", _doctor
    ),
    "demo": Command(
        "Make a team with a month of believable mail to look around in; --remove takes it away.", _demo
    ),
    "version": Command("Print the version.", _version),
    "backup": Command("Make a backup while the server runs; check one, or try one.", _backup),
    "restore": Command("Bring a backup into an empty data folder or an empty database.", _restore),
    "restored": CommandGroup(
        _restored,
        "Show what a restore has put aside, because it may have been sent since; release or drop it.",
    ),
    "upgrade": Command("With --check: say what this release would do to the database.", _upgrade),
}


def main() -> None:
    """Run the command that the arguments name; what the operator can mend ends in one sentence."""
    open_closed_streams()
    wanted = sys.argv[1] if len(sys.argv) > 1 else None
    # Loading the program takes longest in a start: it begins before we load what reads the command line.
    fork_server = begun_early() if wanted == "serve" and "--help" not in sys.argv else None
    try:
        app = program()
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.exit(app(obj=fork_server, prog_name="pillarbox", standalone_mode=False))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as problem:
        status = status_of(problem)
        if status is None:
            raise
        sys.exit(complaint(sentence_of(problem), status))
    finally:
        if fork_server is not None:
            fork_server.process.kill()


def open_closed_streams() -> None:
    """Give each standard stream that the caller has closed to the null device: a file that is opened later
    would take its number."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            # The descriptor that was closed is the lowest that is free, so this takes it.
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))


def begun_early() -> ForkServerProcess | None:
    """Return a fork server, if the system has room for one; else the supervisor tries again, and says why
    not."""
    try:
        return started(FACTORY)
    except OSError:
        return None


def status_of(problem: Exception) -> int | None:
    """Return the exit status after a sentence for the operator; None for any other exception."""
    from typer.exceptions import TyperException

    # Loads much that not every command needs.
    from pillarbox.kernel.process.supervisor import SENTENCES
    from pillarbox.kernel.settings.settings import ConfigError

    if isinstance(problem, (ConfigError, TyperException)):
        return WRONG_SETTING
    return FAILED if isinstance(problem, SENTENCES) else None


def sentence_of(problem: Exception) -> str:
    """Return the error's text for the operator; for a wrong command line it says where the help is."""
    context = getattr(problem, "ctx", None)
    if context is None:
        return str(problem)
    said: str = problem.format_message()  # type: ignore[attr-defined]
    if not said:
        return ""
    sentence = said if said.endswith((".", "?")) else f"{said}."
    return f"{sentence} `{context.command_path} --help` shows what there is."


def complaint(sentence: str, status: int) -> int:
    """Say what went wrong; nothing where a group without a command has shown its help."""
    if sentence:
        print(f"pillarbox: {sentence}", file=sys.stderr)
    return status
