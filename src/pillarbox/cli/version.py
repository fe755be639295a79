"""`pillarbox version`."""

from __future__ import annotations

import typer

import pillarbox


def command() -> None:
    """Print the version."""
    typer.echo(pillarbox.__version__)
