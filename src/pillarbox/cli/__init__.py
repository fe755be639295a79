"""The command line: one file per command or group of commands, put together here."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import typer

from pillarbox.cli import domains, emails, keys, queue, send, serve, teams, verify, version
from pillarbox.kernel.config import ConfigError
from pillarbox.kernel.supervisor import SENTENCES

COMMANDS: Mapping[str, Callable[..., Any]] = {
    "serve": serve.command,
    "send": send.command,
    "verify": verify.command,
    "version": version.command,
}

GROUPS: Mapping[str, typer.Typer] = {
    "teams": teams.group,
    "keys": keys.group,
    "domains": domains.group,
    "emails": emails.group,
    "queue": queue.group,
}

WRONG_SETTING = 2
FAILED = 1


def program() -> typer.Typer:
    """The whole command line."""
    app = typer.Typer(
        name="pillarbox",
        help="A self-hosted email platform.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    for name, command in COMMANDS.items():
        app.command(name)(command)
    for name, group in GROUPS.items():
        app.add_typer(group, name=name)
    return app


def main() -> None:
    """Run the command that the arguments name; what the operator can mend ends in one sentence."""
    try:
        program()()
    except ConfigError as problem:
        sys.exit(complaint(problem, WRONG_SETTING))
    except SENTENCES as problem:
        sys.exit(complaint(problem, FAILED))


def complaint(problem: Exception, status: int) -> int:
    print(f"pillarbox: {problem}", file=sys.stderr)
    return status
