"""Schedules items: bounded slots per site, round robin over sites and, inside a site, over teams.

Items wait by pair of team and destination. A site is what the slots belong to: the relay, the capture
store, or the mail servers of one or more destinations. A site that does not answer fills only its own
slots; a team with many items takes its turn like a team with one.

An item that has run for `LATE_AFTER` seconds is late, and its slot is given to the next one: mail goes on to
a relay that lets thirty connections hang. As many of a site may be late as it may have slots at the most;
beyond that, and while others wait, servers that are silent are given up on (`abort_if_silent`).

Copies of broadcasts wait behind all other mail: in a priority of their own at each site. It is served when
nothing else can be started anywhere, and leaves some of the slots free for what comes next.
"""

from __future__ import annotations

import heapq
import math
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from pillarbox.delivery.items import Item
from pillarbox.delivery.rate_control import RateControl, SiteLimits, SiteSignal

Pair = tuple[UUID, str]
LATE_AFTER = 10.0
MOST_LATE = 200
"""Items of a process that are late and count towards none of its limits."""

RATE_CONTROLS_KEPT = 20_000
SHARED_SIGNALS = (SiteSignal.SLOW, SiteSignal.CROWDED)
"""Signals that are shared with the other processes, besides that a site is out of reach."""


class Site(NamedTuple):
    """Where slots are counted, and how many there are."""

    name: str
    limits: SiteLimits


class SiteComplaint(NamedTuple):
    """A complaint of a site, as one process shares it with the others: the site is closed for so many
    seconds, and gets so many mails a second from the process that reports it."""

    site: str
    signal: SiteSignal
    closed_for: float
    rate: float | None


MAIL, COPIES = 0, 1
"""The priorities, the first before the second."""

BRIEFLY = 5.0
"""Seconds that a site may be closed while items wait for it in memory."""

COPIES_PART = 0.9
"""Of the slots of a site, and of all, copies of broadcasts take no more than this."""


@dataclass(slots=True)
class _Priority:
    """The queue of one kind of mail at a site: transactional mail, or copies. `running` are those that are
    not late."""

    number: int
    listed: bool = False
    turns: deque[Pair] = field(default_factory=deque)
    waiting: dict[Pair, deque[Item]] = field(default_factory=dict)
    running: int = 0


@dataclass(slots=True)
class _Queue:
    rate_control: RateControl
    priorities: tuple[_Priority, _Priority] = field(
        default_factory=lambda: (_Priority(MAIL), _Priority(COPIES))
    )
    late: dict[int, Item] = field(default_factory=dict)

    @property
    def has_waiting(self) -> bool:
        return bool(self.priorities[MAIL].turns or self.priorities[COPIES].turns)

    def has_capacity(self, priority: _Priority) -> bool:
        """Return whether the site has a slot for what waits in the priority."""
        control = self.rate_control
        if priority.number == COPIES and priority.running >= max(1, int(control.slots * COPIES_PART)):
            return False
        return control.has_capacity


class SiteScheduler:
    """Items in memory, waiting and running. Not thread-safe; every call is (nearly) constant time."""

    def __init__(self, site_of: Callable[[str], Site], most_running: int) -> None:
        self._site_of = site_of
        self._most_running = most_running
        self._sites: dict[str, _Queue] = {}
        self._rate_controls: OrderedDict[str, RateControl] = OrderedDict()
        self._ready: tuple[deque[str], deque[str]] = (deque(), deque())
        self._closed: list[tuple[float, str, int]] = []
        self._most_copies = max(1, int(most_running * COPIES_PART))
        self.copies_to_start = math.inf
        """How many copies may be started until this is set again; other mail is started in any case."""

        self._begun: OrderedDict[int, tuple[float, Item]] = OrderedDict()
        """The running items that are not late, by their identity, in the order in which they began."""

        self._sharers = 1
        self._complaints: dict[str, SiteSignal] = {}
        self._early_complaints: OrderedDict[str, tuple[SiteComplaint, float]] = OrderedDict()
        self.running = 0
        self.late = 0
        self._running = [0, 0]
        self._waiting = [0, 0]

    @property
    def waiting(self) -> int:
        """All items that wait."""
        return sum(self._waiting)

    @property
    def mail_waiting(self) -> int:
        """Those that are no copies of broadcasts."""
        return self._waiting[MAIL]

    def add(self, item: Item) -> None:
        """Put an item at the end of the queue of its team and destination."""
        site = self._site_of(item.destination)
        item.site = site.name
        queue = self._sites.get(site.name)
        if queue is None:
            queue = self._sites[site.name] = _Queue(self._rate_control_of(site))
        priority = queue.priorities[_priority_of(item)]
        pair = (item.team_id, item.destination)
        if pair not in priority.waiting:
            priority.waiting[pair] = deque()
            priority.turns.append(pair)
        priority.waiting[pair].append(item)
        self._waiting[priority.number] += 1
        self._list(site.name, queue)

    def take(self, now: float) -> Item | None:
        """Return the next item that has a free slot, now counted as running; None when there is none."""
        self._reopen(now)
        self._find_late(now)
        found = self._take(MAIL, now)
        return self._take(COPIES, now) if found is None else found

    def _take(self, number: int, now: float) -> Item | None:
        ready = self._ready[number]
        while ready and self._has_room(number):
            name = ready.popleft()
            queue = self._sites.get(name)
            if queue is None:
                continue
            priority = queue.priorities[number]
            priority.listed = False
            if not priority.turns or not queue.has_capacity(priority):
                continue
            opens = queue.rate_control.opens_at()
            if opens > now:
                priority.listed = True
                heapq.heappush(self._closed, (opens, name, number))
                continue
            return self._start(name, queue, priority, now)
        return None

    def _has_room(self, number: int) -> bool:
        if number == COPIES and (self._running[COPIES] >= self._most_copies or self.copies_to_start < 1):
            return False
        return self._has_capacity

    def next_change_in(self, now: float) -> float | None:
        """Return the seconds until a site opens again that items wait for, or one that runs is late."""
        times = [self._closed[0][0]] if self._closed else []
        if self.waiting and self._begun:
            times.append(next(iter(self._begun.values()))[0] + LATE_AFTER)
        return max(0.0, min(times) - now) if times else None

    def abort_if_silent(self) -> None:
        """Give up on servers that are silent while other items wait for what they hold."""
        for queue in self._sites.values():
            if (queue.has_waiting and not queue.rate_control.has_capacity) or (
                self.waiting and not self._has_capacity
            ):
                for item in list(queue.late.values()):
                    if item.abort_if_silent is not None:
                        item.abort_if_silent()

    def finish(self, item: Item, signal: SiteSignal, now: float) -> bool:
        """Free the slot of an item that `take` returned; True when its site is out of reach now."""
        queue = self._sites[item.site]
        if queue.late.pop(id(item), None) is not None:
            queue.rate_control.late -= 1
            self.late -= 1
        else:
            self._begun.pop(id(item), None)
            self._leave(queue, item)
        broken = queue.rate_control.end(signal, now)
        self.running -= 1
        if broken or signal in SHARED_SIGNALS:
            # To the other processes a relay that refuses us is one that is out of reach.
            self._complaints[item.site] = SiteSignal.UNREACHABLE if signal is SiteSignal.HELD else signal
        if queue.has_waiting:
            self._list(item.site, queue)
        elif not queue.rate_control.running:
            del self._sites[item.site]
        return broken

    def closed_for(self, site: str, now: float) -> float:
        """Return the seconds for which nothing is started there."""
        rate_control = self._rate_controls.get(site)
        return max(0.0, rate_control.closed_until - now) if rate_control is not None else 0.0

    def is_closed(self, item: Item, now: float) -> bool:
        """Return whether nothing is started at the site of this item for a while."""
        return self.closed_for(self._site_of(item.destination).name, now) > BRIEFLY

    def holds_back(self, destination: str, now: float) -> bool:
        """Return whether mail for this destination stays where it is, because its relay refuses us."""
        rate_control = self._rate_controls.get(self._site_of(destination).name)
        return rate_control is not None and rate_control.is_held(now)

    def is_refused(self, now: float) -> bool:
        """Return whether the relay refuses us."""
        return any(rate_control.is_refused(now) for rate_control in self._rate_controls.values())

    def share(self, sharers: int) -> None:
        """Divide the slots of each site among so many processes."""
        if sharers != self._sharers:
            self._sharers = sharers
            for rate_control in self._rate_controls.values():
                rate_control.share(sharers)

    def complaints(self, now: float) -> list[SiteComplaint]:
        """Return the complaints of sites since the last call."""
        complaints = [
            SiteComplaint(site, signal, max(0.0, rate_control.closed_until - now), rate_control.rate)
            for site, signal in self._complaints.items()
            if (rate_control := self._rate_controls.get(site)) is not None
        ]
        self._complaints.clear()
        return complaints

    def apply_complaint(self, complaint: SiteComplaint, now: float) -> None:
        """Apply what another process reports of a site."""
        rate_control = self._rate_controls.get(complaint.site)
        if rate_control is not None:
            rate_control.apply_signal(complaint.signal, now + complaint.closed_for, complaint.rate, now)
            return
        while len(self._early_complaints) >= RATE_CONTROLS_KEPT:
            self._early_complaints.popitem(last=False)
        self._early_complaints[complaint.site] = (complaint, now)

    def evict(self, site: str) -> list[Item]:
        """Remove and return what waits for one site."""
        queue = self._sites.get(site)
        if queue is None:
            return []
        left: list[Item] = []
        for priority in queue.priorities:
            found = [item for items in priority.waiting.values() for item in items]
            priority.waiting.clear()
            priority.turns.clear()
            self._waiting[priority.number] -= len(found)
            left += found
        return left

    def evict_held(self, now: float) -> list[Item]:
        """Evict the items of all relays that refuse us."""
        held = [name for name, queue in self._sites.items() if queue.rate_control.is_held(now)]
        return [item for name in held for item in self.evict(name)]

    def waiting_in(self, pair: Pair, priority: int = MAIL) -> int:
        """Return how many items of one team for one destination wait in the priority."""
        queue = self._sites.get(self._site_of(pair[1]).name)
        return len(queue.priorities[priority].waiting.get(pair, ())) if queue is not None else 0

    def busy(self, priority: int = MAIL) -> set[Pair]:
        """Return the teams and destinations that have items waiting in the priority."""
        return {pair for queue in self._sites.values() for pair in queue.priorities[priority].waiting}

    def remove_surplus(self, limit: int, priority: int = MAIL) -> list[Item]:
        """Remove and return, of each team and destination, the last of its items beyond `limit`."""
        queues = [
            items for site in self._sites.values() for items in site.priorities[priority].waiting.values()
        ]
        left = [items.pop() for items in queues for _ in range(len(items) - limit)]
        self._waiting[priority] -= len(left)
        return left

    def drain(self) -> list[Item]:
        """Remove and return everything that waits."""
        return [item for site in list(self._sites) for item in self.evict(site)]

    def _start(self, name: str, queue: _Queue, priority: _Priority, now: float) -> Item:
        pair = priority.turns.popleft()
        item = priority.waiting[pair].popleft()
        if priority.waiting[pair]:
            priority.turns.append(pair)
        else:
            del priority.waiting[pair]
        queue.rate_control.begin(now)
        self._begun[id(item)] = now, item
        if priority.number == COPIES:
            self.copies_to_start -= 1
        self.running += 1
        priority.running += 1
        self._running[priority.number] += 1
        self._waiting[priority.number] -= 1
        self._list(name, queue)
        item.running = True
        return item

    def _reopen(self, now: float) -> None:
        while self._closed and self._closed[0][0] <= now:
            _, name, number = heapq.heappop(self._closed)
            queue = self._sites.get(name)
            if queue is not None:
                queue.priorities[number].listed = False
                self._list(name, queue)

    def _find_late(self, now: float) -> None:
        """Give the slots of items that have run for `LATE_AFTER` seconds to the next ones."""
        while self._begun:
            key, (began, item) = next(iter(self._begun.items()))
            if began + LATE_AFTER > now:
                break
            del self._begun[key]
            queue = self._sites[item.site]
            queue.late[key] = item
            self._leave(queue, item)
            queue.rate_control.late += 1
            self.late += 1
            self._list(item.site, queue)

    @property
    def _has_capacity(self) -> bool:
        return self.running - min(self.late, MOST_LATE) < self._most_running

    def _list(self, name: str, queue: _Queue) -> None:
        for priority in queue.priorities:
            if not priority.listed and priority.turns and queue.has_capacity(priority):
                priority.listed = True
                self._ready[priority.number].append(name)

    def _leave(self, queue: _Queue, item: Item) -> None:
        """Note that an item is over, or late: it counts no more in its priority."""
        number = _priority_of(item)
        queue.priorities[number].running -= 1
        self._running[number] -= 1

    def _rate_control_of(self, site: Site) -> RateControl:
        """Return the rate control of a site; it is kept while the site has no items."""
        rate_control = self._rate_controls.get(site.name)
        if rate_control is None:
            while len(self._rate_controls) >= RATE_CONTROLS_KEPT:
                self._rate_controls.popitem(last=False)
            rate_control = self._rate_controls[site.name] = RateControl(site.limits, self._sharers)
            if site.name in self._early_complaints:
                complaint, at = self._early_complaints.pop(site.name)
                rate_control.apply_signal(complaint.signal, at + complaint.closed_for, complaint.rate, at)
        self._rate_controls.move_to_end(site.name)
        return rate_control


def _priority_of(item: Item) -> int:
    return COPIES if item.is_copy else MAIL
