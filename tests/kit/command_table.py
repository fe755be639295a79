"""Every command that there is, as the command line loads it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from typer import Context
from typer.core import TyperGroup
from typer.main import get_command

from pillarbox.app import MANIFESTS
from pillarbox.cli import program
from pillarbox.kernel.terminal.program import InstalledProgram, running

PLACEHOLDER = "01a20da5-5c90-70e5-b41d-697f7855dcf8"
"""A word that every argument takes: the id of nothing."""


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A command, by the words that call it; of a group only where it does something by itself."""

    words: tuple[str, ...]
    command: Any

    @property
    def name(self) -> str:
        return " ".join(self.words)

    def options(self) -> set[str]:
        return {name for one in self.command.params for name in one.opts}

    def required(self, value: str = PLACEHOLDER) -> list[str]:
        """Return the least that the command line must have behind the words."""
        found: list[str] = []
        for parameter in self.command.params:
            if not parameter.required:
                continue
            words = [_fitting(parameter, value)] * max(1, parameter.nargs)
            found += words if parameter.param_type_name == "argument" else [parameter.opts[0], *words]
        return found


def _fitting(parameter: Any, value: str) -> str:
    choices = getattr(parameter.type, "choices", None)
    return str(next(iter(choices))) if choices else value


def whole_command_line() -> TyperGroup:
    whole = get_command(program())
    assert isinstance(whole, TyperGroup)
    return whole


def command_table() -> list[CommandEntry]:
    """Return all commands, in the order of the help."""
    whole = whole_command_line()
    context = Context(whole)
    found: list[CommandEntry] = []
    with running(InstalledProgram(MANIFESTS)):
        for name in whole.list_commands(context):
            _, command, _ = whole.resolve_command(context, [name])
            found += _below((name,), command)
    return found


def _below(words: tuple[str, ...], command: Any) -> Iterator[CommandEntry]:
    if not isinstance(command, TyperGroup):
        yield CommandEntry(words, command)
        return
    if command.invoke_without_command:
        yield CommandEntry(words, command)
    for name, inner in command.commands.items():
        yield from _below((*words, name), inner)


def parsed(words: Sequence[str]) -> CommandEntry:
    """Return the command that a line calls, with its options read; raise what the command line raises."""
    whole = whole_command_line()
    if any(words[0] in option.opts for option in whole.get_params(Context(whole))):
        # To read it would be to do it: `--install-completion` writes into the home of who runs the test.
        return CommandEntry((), whole)
    context = whole.make_context("pillarbox", list(words))
    command: Any = whole
    path: tuple[str, ...] = ()
    with running(InstalledProgram(MANIFESTS)):
        while isinstance(command, TyperGroup):
            rest = [*context.__dict__.get("_protected_args", ()), *context.args]
            if not rest:
                break
            name, inner, left = command.resolve_command(context, rest)
            assert inner is not None
            path, command = (*path, str(name)), inner
            context = inner.make_context(name, list(left), parent=context)
    return CommandEntry(path, command)


def traceback_of(error: BaseException | None) -> str | None:
    """Return what a person would see as a traceback: None where the program ends in one sentence."""
    from pillarbox.cli import status_of

    if error is None or isinstance(error, (SystemExit, KeyboardInterrupt)):
        return None
    if isinstance(error, Exception) and status_of(error) is not None:
        return None
    return f"{type(error).__name__}: {error} ({inspect.getmodule(type(error))})"
