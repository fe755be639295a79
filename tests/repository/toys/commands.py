"""`pillarbox toys`."""

from __future__ import annotations

import typer

from pillarbox.kernel.settings.settings import read_settings
from pillarbox.kernel.terminal.program import running_program

from .settings import TOY_COLOUR

group = typer.Typer(no_args_is_help=True, help="Count and paint toys.")


@group.command("count")
def count() -> None:
    """Count the toys."""
    typer.echo("2 toys")


@group.command("colour")
def colour() -> None:
    """Say how toys are painted."""
    typer.echo(read_settings(running_program().settings, {})[TOY_COLOUR])
