"""The program that a command belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pillarbox.kernel.manifests import SliceManifest, settings_in, slices_of
from pillarbox.kernel.settings.setting import Setting

if TYPE_CHECKING:
    from pillarbox.kernel.settings.settings import Settings
    from pillarbox.kernel.slices import Slice


@dataclass(frozen=True, slots=True)
class InstalledProgram:
    """The slices that there are, as their manifests."""

    manifests: Sequence[SliceManifest]

    @property
    def settings(self) -> tuple[Setting[Any], ...]:
        return settings_in(self.manifests)

    def refuse_wrong(self, settings: Settings) -> None:
        """Raise ConfigError where settings of a slice do not fit each other."""
        for manifest in self.manifests:
            if manifest.refuse_wrong is not None:
                manifest.refuse_wrong(settings)

    def slices(self) -> tuple[Slice, ...]:
        """Load the program and return its slices, which takes a second and few commands need."""
        return slices_of(self.manifests)


_running: ContextVar[InstalledProgram] = ContextVar("program")


@contextmanager
def running(program: InstalledProgram) -> Iterator[None]:
    """Make the program known while a command of it runs."""
    before = _running.set(program)
    try:
        yield
    finally:
        _running.reset(before)


def running_program() -> InstalledProgram:
    """Return the program whose command runs."""
    return _running.get()
