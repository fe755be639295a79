"""The facts about a slice that are known before the program is loaded: its settings and its commands.

Loading the whole program takes a second. The command line and the supervisor do without: they read the
manifests (`pillarbox.app` has the list), and a manifest imports little. Code that needs the slices themselves
calls `slices_of`, which loads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pillarbox.kernel.settings.setting import Setting
from pillarbox.kernel.settings.table import SETTINGS

if TYPE_CHECKING:
    import typer

    from pillarbox.kernel.settings.settings import Settings
    from pillarbox.kernel.slices import Slice


@dataclass(frozen=True, slots=True)
class Command:
    """A command. `help` is its line in the list of all; `load` imports the function when it is called."""

    help: str
    load: Callable[[], Callable[..., None]]


@dataclass(frozen=True, slots=True)
class CommandGroup:
    """Commands under one name, imported when one of them is called or their help is asked for. Several slices
    may bring commands of one group; the first that has help says what it is for."""

    load: Callable[[], typer.Typer]
    help: str = ""


@dataclass(frozen=True, kw_only=True)
class SliceManifest:
    """The manifest of one slice. `plugin` imports the slice; `title` stands over its settings.
    `refuse_wrong` raises ConfigError where settings of the slice do not fit each other."""

    name: str
    title: str = ""
    plugin: Callable[[], Slice]
    settings: Sequence[Setting[Any]] = ()
    commands: Mapping[str, Command | CommandGroup] = field(default_factory=dict)
    refuse_wrong: Callable[[Settings], None] | None = None

    def __post_init__(self) -> None:
        if self.settings and not self.title:
            raise ValueError(f"the settings of {self.name} need a title")


def settings_in(manifests: Iterable[SliceManifest]) -> tuple[Setting[Any], ...]:
    """Return every setting that there is: the kernel's, then those of the slices; two cannot have
    one name."""
    rows = (*SETTINGS, *(row for one in manifests for row in one.settings))
    names = [row.name for row in rows]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two settings have the name {name}")
    return rows


def slices_of(manifests: Iterable[SliceManifest]) -> tuple[Slice, ...]:
    """Return the slices themselves; loads the program."""
    return tuple(one.plugin() for one in manifests)
