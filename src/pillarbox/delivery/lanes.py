"""Who goes next: bounded slots per site, served in turn over sites and, inside a site, over teams.

A lane is one team's items for one destination. A site is what the slots belong to: the relay, the
capture store, or a destination. A dead site fills only its own slots; a team with many items takes its
turn like a team with one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from pillarbox.delivery.items import Item

Lane = tuple[UUID, str]


class Site(NamedTuple):
    """Where slots are counted, and how many there are."""

    name: str
    slots: int


@dataclass(slots=True)
class _Queue:
    slots: int
    running: int = 0
    listed: bool = False
    turns: deque[Lane] = field(default_factory=deque)
    waiting: dict[Lane, deque[Item]] = field(default_factory=dict)


class Lanes:
    """Items in memory, waiting and running. Not thread-safe; every call is constant time."""

    def __init__(self, site_of: Callable[[str], Site], most_running: int) -> None:
        self._site_of = site_of
        self._most_running = most_running
        self._sites: dict[str, _Queue] = {}
        self._ring: deque[str] = deque()
        self.running = 0
        self.waiting = 0

    def add(self, item: Item) -> None:
        """Put an item at the end of its lane."""
        site = self._site_of(item.destination)
        queue = self._sites.setdefault(site.name, _Queue(site.slots))
        lane = (item.team_id, item.destination)
        if lane not in queue.waiting:
            queue.waiting[lane] = deque()
            queue.turns.append(lane)
        queue.waiting[lane].append(item)
        self.waiting += 1
        self._list(site.name, queue)

    def take(self) -> Item | None:
        """The next item that has a free slot, now counted as running; None when there is none."""
        while self._ring and self.running < self._most_running:
            name = self._ring.popleft()
            queue = self._sites[name]
            queue.listed = False
            if not queue.turns or queue.running >= queue.slots:
                continue
            lane = queue.turns.popleft()
            item = queue.waiting[lane].popleft()
            if queue.waiting[lane]:
                queue.turns.append(lane)
            else:
                del queue.waiting[lane]
            queue.running += 1
            self.running += 1
            self.waiting -= 1
            self._list(name, queue)
            item.running = True
            return item
        return None

    def finish(self, item: Item) -> None:
        """Free the slot of an item that `take` returned."""
        name = self._site_of(item.destination).name
        queue = self._sites[name]
        queue.running -= 1
        self.running -= 1
        if queue.turns:
            self._list(name, queue)
        elif not queue.running:
            del self._sites[name]

    def drain(self) -> list[Item]:
        """Remove and return everything that waits."""
        left = [item for queue in self._sites.values() for lane in queue.waiting.values() for item in lane]
        for queue in self._sites.values():
            queue.waiting.clear()
            queue.turns.clear()
        self.waiting = 0
        return left

    def _list(self, name: str, queue: _Queue) -> None:
        if not queue.listed and queue.turns and queue.running < queue.slots:
            queue.listed = True
            self._ring.append(name)
