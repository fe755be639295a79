"""Facts of a process about its installation: settings, parts that slices bring, and its listeners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pillarbox.kernel.manifests import SliceManifest
from pillarbox.kernel.postgres.invariant import Invariant
from pillarbox.kernel.security.sealed_values import SealedColumn
from pillarbox.kernel.settings.settings import Settings
from pillarbox.kernel.slices import Container
from pillarbox.kernel.terminal.program import InstalledProgram


@dataclass(frozen=True, slots=True)
class InstallationFacts:
    """The settings of this process, and what all slices bring. `listeners` are the names of those open."""

    settings: Settings = field(repr=False)
    manifests: Sequence[SliceManifest] = ()
    invariants: Sequence[Invariant] = ()
    sealed: Sequence[SealedColumn] = ()
    listeners: Sequence[str] = ()


def facts_of(kit: Container) -> InstallationFacts:
    """Return the facts of the process."""
    program: Any = kit.find(InstalledProgram)
    return InstallationFacts(
        settings=kit.settings,
        manifests=() if program is None else program.manifests,
        invariants=[invariant for entry in kit.slices for invariant in entry.invariants],
        sealed=[column for entry in kit.slices for column in entry.sealed],
        listeners=list(kit.runtime.listeners),
    )
