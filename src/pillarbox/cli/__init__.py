"""The command line: one file per command or group of commands, put together here."""

from __future__ import annotations

import sys
from importlib import import_module

import typer

from pillarbox.kernel.config import ConfigError

COMMANDS = ("serve", "send", "inbound", "verify", "doctor", "version")
"""Commands: module `pillarbox.cli.NAME`, function `command`."""

GROUPS = ("teams", "keys", "domains", "emails", "queue", "metrics", "webhooks", "maintenance")
"""Groups of commands: module `pillarbox.cli.NAME`, its `group`."""

WRONG_SETTING = 2
FAILED = 1


def program(only: str | None = None) -> typer.Typer:
    """The command line; with `only` just that command, so that a server does not load the others to start."""
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


def nothing() -> None:
    """Keeps a command line of one command from losing the command's name."""


def main() -> None:
    """Run the command that the arguments name; what the operator can mend ends in one sentence."""
    try:
        wanted = sys.argv[1] if len(sys.argv) > 1 else None
        program(wanted if wanted in (*COMMANDS, *GROUPS) else None)()
    except ConfigError as problem:
        sys.exit(complaint(problem, WRONG_SETTING))
    except Exception as problem:
        if not is_sentence(problem):
            raise
        sys.exit(complaint(problem, FAILED))


def is_sentence(problem: Exception) -> bool:
    """Whether it was written for the operator."""
    from pillarbox.kernel.supervisor import SENTENCES  # loads much that not every command needs

    return isinstance(problem, SENTENCES)


def complaint(problem: Exception, status: int) -> int:
    print(f"pillarbox: {problem}", file=sys.stderr)
    return status
