"""The command line: one file per command or group of commands, put together here."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from pillarbox.kernel.process.fork_server_channel import FACTORY, started

if TYPE_CHECKING:
    import typer

    from pillarbox.kernel.slices import Slice

COMMANDS = ("serve", "send", "inbound", "verify", "doctor", "version")
"""Commands: module `pillarbox.cli.NAME`, function `command`."""

GROUPS = ("teams", "keys", "domains", "emails", "queue", "metrics", "webhooks", "maintenance", "keyring")
"""Groups of commands: module `pillarbox.cli.NAME`, its `group`. Slices may bring more of their own."""

WRONG_SETTING = 2
FAILED = 1


def program(only: str | None = None, slices: Sequence[Slice] | None = None) -> typer.Typer:
    """The command line; with `only` just that command, so that a server does not load the others to start."""
    import typer

    app = typer.Typer(
        name="pillarbox",
        help="A self-hosted email platform.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    for name in COMMANDS:
        if only in (None, name):
            app.command(name)(import_module(f"pillarbox.cli.{name}").command)
    for name in GROUPS:
        if only in (None, name):
            app.add_typer(import_module(f"pillarbox.cli.{name}").group, name=name)
    if only is not None:
        app.callback()(nothing)
        return app
    for name, load in commands_of(slices).items():
        app.add_typer(load(), name=name)
    return app


def commands_of(slices: Sequence[Slice] | None) -> dict[str, Callable[[], typer.Typer]]:
    """The groups of commands that slices bring, by name; without `slices` those of the program."""
    if slices is None:
        # Loads the whole program: only where a name is not one of ours, and for the list of all commands.
        from pillarbox.app import SLICES

        slices = SLICES
    return {name: load for one in slices for name, load in one.commands.items()}


def nothing() -> None:
    """Keeps a command line of one command from losing the command's name."""


def main() -> None:
    """Run the command that the arguments name; what the operator can mend ends in one sentence."""
    wanted = sys.argv[1] if len(sys.argv) > 1 else None
    # Loading the program takes longest in a start: it begins before we load what reads the command line.
    fork_server = started(FACTORY) if wanted == "serve" and "--help" not in sys.argv else None
    try:
        program(wanted if wanted in (*COMMANDS, *GROUPS) else None)(obj=fork_server)
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
