"""Puts the slices together. Importing this loads the program.

What a slice brings stands in its `plugin.py` (`pillarbox.kernel.slices`). `build` makes one worker's
application; nothing here knows a part by name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pillarbox.app import MANIFESTS
from pillarbox.kernel import plugin as kernel
from pillarbox.kernel.manifests import slices_of
from pillarbox.kernel.process.runtime import Runtime
from pillarbox.kernel.settings.settings import Settings
from pillarbox.kernel.slices import Container, Externals, Pools, Slice, StartOrder, Stop
from pillarbox.kernel.terminal.program import InstalledProgram

SLICES: tuple[Slice, ...] = slices_of(MANIFESTS)
"""All of them, loaded."""

T = TypeVar("T")


class App:
    """The application of one worker process."""

    def __init__(self, kit: Container) -> None:
        self.kit = kit
        self._loops: list[asyncio.Task[None]] = []
        kit.build_all()
        self._running = [found for one in kit.slices for found in one.background(kit)]
        self._api = kernel.http_application(kit)

    def need(self, kind: type[T]) -> T:
        """Return the part of that type."""
        return self.kit.need(kind)

    def find(self, kind: type[T]) -> T | None:
        """Return the part of that type, or None where this process has none."""
        return self.kit.find(kind)

    @property
    def asgi(self) -> Any:
        return self._api

    async def start(self) -> None:
        """Return when the background work runs and requests can be answered."""
        steps = [found.start for found in self._running if found.start is not None]
        steps.append((StartOrder.LOOPS, self._begin_loops))
        for _, begin in sorted(steps, key=lambda step: step[0]):
            await begin()

    async def _begin_loops(self) -> None:
        kit = self.kit
        loops = [loop for one in kit.slices for loop in one.loops(kit)]
        if kit.runtime.metrics_folder is not None:
            loops += [loop for one in kit.slices for loop in one.metrics(kit)]
        self._loops = [asyncio.create_task(loop) for loop in loops]

    def closing(self) -> None:
        """Let nobody wait for a mail any longer: the servers are about to close."""
        for found in self._running:
            if found.closing is not None:
                found.closing()

    def reload(self) -> None:
        """Look at the files that may be renewed while the process runs."""
        for found in self._running:
            if found.reload is not None:
                found.reload()

    async def stop(self, grace: float) -> None:
        """Finish what is on the wire within `grace` seconds and give back the leases."""
        steps = [found.stop for found in self._running if found.stop is not None]
        steps.append((Stop.LOOPS, self._end_loops))
        for _, end in sorted(steps, key=lambda step: step[0]):
            await end(grace)

    async def _end_loops(self, _: float) -> None:
        for task in self._loops:
            task.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)


async def build(
    settings: Settings,
    runtime: Runtime,
    externals: Externals | None = None,
    parts: Mapping[type, object] | None = None,
    slices: Sequence[Slice] = SLICES,
) -> App:
    """Build the application of one worker process; the database must be migrated already."""
    if settings.database_url is None:
        raise ValueError("a worker needs the address of its database")
    pools = await Pools.open(settings.database_url)
    known = {InstalledProgram: InstalledProgram(MANIFESTS), **(parts or {})}
    return App(Container(slices, settings, runtime, pools, externals or Externals.real(settings), known))
