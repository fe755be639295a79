"""The interface of a slice, and the container from which it gets the parts that it needs.

Each slice has a `plugin.py` with one `SLICE`, and the program is the list of them (`pillarbox.app`). A
`Container` is made of that list, and it builds each part when somebody needs it, once, by its type. So
nothing is built in a fixed order, and a test builds one slice alone from a kit of the few parts that it
needs.
"""

from __future__ import annotations

import random
import ssl
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import IntEnum, auto
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

import asyncpg

from pillarbox.kernel.clock import Clock, SystemClock
from pillarbox.kernel.http.files import Opener
from pillarbox.kernel.http.routing import Access, Route
from pillarbox.kernel.network.dns import DnsResolver, Resolver
from pillarbox.kernel.parts import PartRegistry
from pillarbox.kernel.personal_data import PersonalData
from pillarbox.kernel.postgres import connection_limits
from pillarbox.kernel.postgres.bounded_pool import close_within
from pillarbox.kernel.postgres.database import ENGINE, Connection, open_pool
from pillarbox.kernel.postgres.invariant import Invariant
from pillarbox.kernel.process.clock_watch import ClockCorrection
from pillarbox.kernel.process.runtime import Runtime
from pillarbox.kernel.security.sealed_values import SealedColumn
from pillarbox.kernel.settings.setting import Setting
from pillarbox.kernel.settings.settings import Settings
from pillarbox.kernel.work.jobs import Handler, JobLimit
from pillarbox.kernel.work.periodic import Periodic

T = TypeVar("T")

CLOSE_SECONDS = 5.0


class StartOrder(IntEnum):
    """The order in which a worker starts: what does the work is there before work is asked of it, and the
    SMTP servers open last, when all that they hand mail to runs."""

    ENGINES = auto()
    NOTIFICATIONS = auto()
    WAITERS = auto()
    JOBS = auto()
    STATE = auto()
    LOOPS = auto()
    SERVERS = auto()


class Stop(IntEnum):
    """The order in which a worker stops: nothing new comes in; what was accepted is committed, the request
    log last because the others write in it; the engines end, and only then are their leases given back; loops
    may write until here; then connections are closed, their users first, the database's at the very end."""

    SERVERS = auto()
    COMMITS = auto()
    REQUEST_LOG = auto()
    NOTIFICATIONS = auto()
    WAITERS = auto()
    JOBS = auto()
    ENGINES = auto()
    LEASES = auto()
    LOOPS = auto()
    CLIENTS = auto()
    CONNECTIONS = auto()
    THREADS = auto()
    DATABASE = auto()


class Background(NamedTuple):
    """Something that runs in a worker. `closing` is called when the servers are about to close; `stop` is
    given the seconds that it may take; `reload` looks at files that may be renewed."""

    start: tuple[StartOrder, Callable[[], Awaitable[object]]] | None = None
    closing: Callable[[], None] | None = None
    stop: tuple[Stop, Callable[[float], Awaitable[object]]] | None = None
    reload: Callable[[], object] | None = None


class RetentionItem(NamedTuple):
    """Something that grows, and for how long it is kept: days that a setting says (0: see its meaning), or a
    fixed time. A team may have a number of days of its own where `per_team` says so."""

    what: str
    length: Setting[int] | timedelta
    per_team: bool = False


Loop = Coroutine[Any, Any, None]
EventBodies = Callable[[Connection, UUID, Sequence[Any]], Awaitable[Sequence[bytes]]]
"""Makes the data of webhook events that only refer to a row: team, and what the events refer to."""


def nothing(_: Container) -> tuple[()]:
    return ()


def empty(_: Container) -> dict[str, Any]:
    return {}


def always(_: Settings) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Retention:
    """The data that a slice deletes with age, as it is listed, and the periodic jobs that delete it."""

    kept: Sequence[RetentionItem]
    periodic: Callable[[Container], Sequence[Periodic]]


@dataclass(frozen=True, kw_only=True)
class Slice:
    """One slice and all that it adds to the program. Everything but the name may be left out; facts that must
    be known before the program is loaded stand in its manifest (`pillarbox.kernel.manifests`).

    A builder in `provides` may answer None: then the process has no such part. `routes` are the API;
    `pages` are for people in a browser, which sends no API key. `closed_routes` and `closed_pages` are
    served only where `opens` says so. The jobs of `retention` are not repeated in `periodic`.
    `webhook_shapes` are the types of the data of webhook events, `event_bodies` the makers of data by the
    event's kind or the first word of it. `clock_corrections` correct rows that were dated by a clock that
    was ahead. `sealed` are the columns that the key ring seals, `personal_data` what is held about people.
    `loops` run until the worker ends, and so
    do `metrics`, where metrics are asked for.
    """

    name: str
    provides: Mapping[type, Callable[[Container], object]] = field(default_factory=dict)
    routes: Sequence[Route] = ()
    pages: Sequence[Route] = ()
    closed_routes: Sequence[Route] = ()
    closed_pages: Sequence[Route] = ()
    opens: Callable[[Settings], bool] = always
    jobs: Callable[[Container], Mapping[str, Handler]] = empty
    job_limits: Callable[[Container], Sequence[JobLimit]] = nothing
    periodic: Callable[[Container], Sequence[Periodic]] = nothing
    retention: Sequence[Retention] = ()
    listeners: Callable[[Container], Mapping[str, Callable[[], None]]] = empty
    background: Callable[[Container], Sequence[Background]] = nothing
    loops: Callable[[Container], Iterable[Loop]] = nothing
    metrics: Callable[[Container], Iterable[Loop]] = nothing
    clock_corrections: Callable[[Container], Sequence[ClockCorrection]] = nothing
    files: Callable[[Container], Mapping[str, Opener]] = empty
    webhook_shapes: Mapping[str, type] = field(default_factory=dict)
    event_bodies: Mapping[str, EventBodies] = field(default_factory=dict)
    invariants: Sequence[Invariant] = ()
    sealed: Sequence[SealedColumn] = ()
    personal_data: Sequence[PersonalData] = ()

    def __post_init__(self) -> None:
        for page in (*self.pages, *self.closed_pages):
            if page.needs is not Access.PUBLIC:
                raise ValueError(f"{self.name}: {page.path} is a page, and a browser brings no API key")


@dataclass(frozen=True, slots=True)
class Externals:
    """The world outside; tests put theirs in its place."""

    clock: Clock
    resolver: Resolver
    random: Callable[[], float]
    shuffle: Callable[[list[str]], None]
    trust: ssl.SSLContext | None = None
    """Whose certificates count where they are checked; the system's authorities."""
    https_port: int = 443

    @classmethod
    def real(cls, settings: Settings) -> Externals:
        clock = SystemClock()
        servers = [(at.host, at.port) for at in settings.dns] or None
        return cls(clock, DnsResolver(servers, clock=clock), random.random, random.shuffle)


@dataclass(frozen=True, slots=True)
class Pools:
    """Two pools, because a claim that holds row locks must always find the connection it still needs:
    requests that wait for those very locks may hold every connection of their pool."""

    requests: asyncpg.Pool
    engine: asyncpg.Pool

    @classmethod
    async def open(cls, url: str) -> Pools:
        return cls(
            await open_pool(url, limit=connection_limits.REQUESTS),
            await open_pool(url, limit=connection_limits.ENGINE, application=ENGINE, by_key=True),
        )

    async def close(self) -> None:
        """Close the pools within a few seconds, even where the database stands still."""
        await close_within(self.engine, CLOSE_SECONDS)
        await close_within(self.requests, CLOSE_SECONDS)


class PartMissingError(LookupError):
    """Nobody provides a part that is needed."""


class CircularNeedError(RuntimeError):
    """A part cannot be built because building it needs the part itself."""


class Container:
    """One process's parts, by type: built when first needed, by the slice that provides them. `parts` are
    taken in place of what the slices would build."""

    def __init__(
        self,
        slices: Sequence[Slice],
        settings: Settings,
        runtime: Runtime,
        pools: Pools,
        externals: Externals,
        parts: Mapping[type, object] | None = None,
    ) -> None:
        self.slices = slices
        self.settings = settings
        self.runtime = runtime
        self.pools = pools
        self.pool = pools.requests
        self.engine_pool = pools.engine
        self.externals = externals
        self.clock = externals.clock
        self.resolver = externals.resolver
        self.services = PartRegistry()
        self._builders = builders(slices)
        self._absent: set[type] = set()
        self._building: list[type] = []
        for kind, part in (parts or {}).items():
            self.services.add(part, kind)

    def find(self, kind: type[T]) -> T | None:
        """Return the part of that type; None where this process has none."""
        found = self.services.find(kind)
        if found is None and kind in self._builders and kind not in self._absent:
            found = self._build(kind)
        return found

    def need(self, kind: type[T]) -> T:
        """Return the part of that type; raise PartMissingError where there is none."""
        found = self.find(kind)
        if found is None:
            raise PartMissingError(f"{self._way(kind)}: nothing provides {kind.__name__} here")
        return found

    def build_all(self) -> None:
        """Build every part that the slices provide, so that what is missing shows at the start."""
        for kind in self._builders:
            self.find(kind)

    def _build(self, kind: type[T]) -> T | None:
        if kind in self._building:
            raise CircularNeedError(self._way(kind))
        self._building.append(kind)
        try:
            part = self._builders[kind](self)
        finally:
            self._building.pop()
        if part is None:
            self._absent.add(kind)
            return None
        self.services.add(part, kind)
        return self.services.use(kind)

    def _way(self, kind: type) -> str:
        """Return the chain of needs down to this type, as a text."""
        return " needs ".join(one.__name__ for one in (*self._building, kind))

    @property
    def routes(self) -> list[Route]:
        """The routes that are served here."""
        opened = [
            route
            for one in self.slices
            if one.opens(self.settings)
            for route in (*one.closed_pages, *one.closed_routes)
        ]
        return [route for one in self.slices for route in (*one.routes, *one.pages)] + opened

    @property
    def periodic(self) -> list[Periodic]:
        """Return the periodic jobs of all slices, those of retention included."""
        found = [periodic for one in self.slices for periodic in one.periodic(self)]
        kept = [retention for one in self.slices for retention in one.retention]
        return found + [periodic for retention in kept for periodic in retention.periodic(self)]


def builders(slices: Iterable[Slice]) -> dict[type, Callable[[Container], object]]:
    """Return the builder of each type; ValueError where two slices provide the same type."""
    found: dict[type, Callable[[Container], object]] = {}
    for one in slices:
        for kind, builder in one.provides.items():
            if kind in found:
                raise ValueError(f"{one.name} provides {kind.__name__}, which another slice provides already")
            found[kind] = builder
    return found
