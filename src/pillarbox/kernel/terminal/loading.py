"""A command line whose commands are imported when they are called: the list of them must come at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperGroup
from typer.main import get_command

import pillarbox
from pillarbox.kernel.manifests import Command, CommandGroup
from pillarbox.kernel.terminal.program import InstalledProgram, running

Named = tuple[str, Command | CommandGroup]


def command_line(program: InstalledProgram, commands: Iterable[Named]) -> typer.Typer:
    """Return the command line of these commands and of those of the program; commands are listed
    before groups."""
    brought = merged([*commands, *(found for one in program.manifests for found in one.commands.items())])
    kind = type("CommandLine", (LoadedWhenCalled,), {"program": program, "brought": brought})
    app = typer.Typer(
        cls=kind,
        name="pillarbox",
        help="A self-hosted email platform.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )
    app.callback()(root)
    for name, found in sorted(brought.items(), key=lambda item: isinstance(item[1][0], CommandGroup)):
        app.command(name, help=help_of(found))(nothing)
    return app


def merged(commands: Iterable[Named]) -> dict[str, list[Command | CommandGroup]]:
    """Return the commands by name; a group may be brought in parts."""
    brought: dict[str, list[Command | CommandGroup]] = {}
    for name, found in commands:
        parts = brought.setdefault(name, [])
        parts.append(found)
        if len(parts) > 1 and not all(isinstance(part, CommandGroup) for part in parts):
            raise ValueError(f"two slices bring the command {name}")
    return brought


def help_of(parts: list[Command | CommandGroup]) -> str:
    """Return the help of a command, or of a group: that of the first part that has one."""
    return next((part.help for part in parts if part.help), "")


class LoadedWhenCalled(TyperGroup):
    """Shows what is said of each command, and imports the one that is called."""

    program: ClassVar[InstalledProgram]
    brought: ClassVar[Mapping[str, list[Command | CommandGroup]]]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, found, rest = super().resolve_command(ctx, args)
        # Completion resolves commands, and invokes none.
        with running(self.program):
            return name, found if name is None else loaded(name, self.brought[name]), rest

    def invoke(self, ctx: Any) -> Any:
        with running(self.program):
            return super().invoke(ctx)


def loaded(name: str, parts: list[Command | CommandGroup]) -> Any:
    """Return the Click command of that name, imported now; groups of several parts are joined."""
    line = typer.Typer()
    line.callback()(nothing)
    groups = [part.load() for part in parts if isinstance(part, CommandGroup)]
    if len(groups) == 1:
        line.add_typer(groups[0], name=name)
    elif groups:
        line.add_typer(joined(groups, help_of(parts)), name=name)
    else:
        line.command(name)(parts[0].load())
    whole = get_command(line)
    assert isinstance(whole, TyperGroup)
    return whole.commands[name]


def joined(groups: list[typer.Typer], help: str) -> typer.Typer:
    """Return one group of the commands of several."""
    whole = typer.Typer(no_args_is_help=True, help=help)
    for group in groups:
        whole.add_typer(group)
    return whole


def show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(pillarbox.__version__)
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option("--version", help="Print the version.", callback=show_version, is_eager=True),
]


def root(version: Version = False) -> None:
    """Take the options before the command's name."""


def nothing() -> None:
    """Stand for a command that is not loaded."""
