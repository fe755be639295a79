"""The command line: what the slices bring, and here the commands that are about the whole program."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import Command, Manifest
from pillarbox.kernel.process.fork_server_channel import FACTORY, started

if TYPE_CHECKING:
    import typer

WRONG_SETTING = 2
FAILED = 1


def program(manifests: Sequence[Manifest] | None = None) -> typer.Typer:
    """The command line of these slices, else of all; each command is loaded when it is called."""
    from pillarbox.app import MANIFESTS
    from pillarbox.kernel.terminal.loading import command_line
    from pillarbox.kernel.terminal.program import Program

    return command_line(Program(MANIFESTS if manifests is None else manifests), COMMANDS.items())


def _serve() -> Callable[..., None]:
    from pillarbox.cli import serve
    from pillarbox.kernel.terminal.program import running_program

    return serve.command_of(running_program().settings)


def _send() -> Callable[..., None]:
    from pillarbox.cli.send import command

    return command


def _verify() -> Callable[..., None]:
    from pillarbox.cli.verify import command

    return command


def _doctor() -> Callable[..., None]:
    from pillarbox.cli.doctor import command

    return command


def _version() -> Callable[..., None]:
    from pillarbox.cli.version import command

    return command


COMMANDS = {
    "serve": Command("Run Pillarbox: database, API, delivery and background work, until a signal.", _serve),
    "send": Command("Send a test mail through the running server and follow what becomes of it.", _send),
    "verify": Command(
        "Reconcile emails, recipients, work, history, metrics, webhooks, kept answers and blobs; name every "
        "gap.",
        _verify,
    ),
    "doctor": Command(
        "Find out whether this machine can deliver and receive mail, and what to do where it cannot.", _doctor
    ),
    "version": Command("Print the version.", _version),
}


def main() -> None:
    """Run the command that the arguments name; what the operator can mend ends in one sentence."""
    wanted = sys.argv[1] if len(sys.argv) > 1 else None
    # Loading the program takes longest in a start: it begins before we load what reads the command line.
    fork_server = started(FACTORY) if wanted == "serve" and "--help" not in sys.argv else None
    try:
        program()(obj=fork_server)
    except Exception as problem:
        status = status_of(problem)
        if status is None:
            raise
        sys.exit(complaint(problem, status))
    finally:
        if fork_server is not None:
            fork_server.process.kill()


def status_of(problem: Exception) -> int | None:
    """The exit status after a sentence for the operator; None for any other exception."""
    # Loads much that not every command needs.
    from pillarbox.kernel.process.supervisor import SENTENCES
    from pillarbox.kernel.settings.settings import ConfigError

    if isinstance(problem, ConfigError):
        return WRONG_SETTING
    return FAILED if isinstance(problem, SENTENCES) else None


def complaint(problem: Exception, status: int) -> int:
    print(f"pillarbox: {problem}", file=sys.stderr)
    return status
