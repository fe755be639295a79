"""Each team has its share of the connections: its queue delays nobody else."""

from __future__ import annotations

import asyncio
from uuid import UUID, uuid4

import pytest

from pillarbox.kernel.postgres import team_share
from pillarbox.kernel.postgres.team_share import CONTENDED_SECONDS, Gate, TeamShares
from pillarbox.kernel.postgres.time_limit import TooManyWaiting

HARBOR, QUAY, PIER = uuid4(), uuid4(), uuid4()


class Requests:
    """Requests that wait at a gate; `admitted` has their teams in the order in which they came in."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.admitted: list[UUID] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def come(self, *teams: UUID) -> None:
        for team in teams:
            if self.gate.enter(team):
                self.admitted.append(team)
            else:
                self.tasks.append(asyncio.create_task(self._wait(team)))
                await asyncio.sleep(0)

    async def leave(self, *teams: UUID) -> None:
        for team in teams:
            self.gate.leave(team)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    async def _wait(self, team: UUID) -> None:
        await self.gate.wait(team)
        self.admitted.append(team)


async def test_a_team_waits_behind_its_own_requests_alone() -> None:
    requests = Requests(Gate(4, lambda: 2))
    await requests.come(*[HARBOR] * 10, QUAY, QUAY)
    assert requests.admitted == [HARBOR, HARBOR, QUAY, QUAY]
    await requests.leave(HARBOR)
    assert requests.admitted[4:] == [HARBOR]


async def test_waiting_teams_take_turns() -> None:
    requests = Requests(Gate(1, lambda: 1))
    await requests.come(HARBOR, HARBOR, HARBOR, HARBOR, QUAY, QUAY, PIER)
    for _ in range(6):
        await requests.leave(requests.admitted[-1])
    assert requests.admitted == [HARBOR, HARBOR, QUAY, PIER, HARBOR, QUAY, HARBOR]
    assert requests.gate.waiting == 0


async def test_who_gives_up_takes_no_turn_and_keeps_no_room() -> None:
    requests = Requests(Gate(1, lambda: 1))
    await requests.come(HARBOR, HARBOR, HARBOR, QUAY)
    first, second, _ = requests.tasks
    first.cancel()
    requests.gate.leave(HARBOR)
    second.cancel()
    await asyncio.gather(*requests.tasks, return_exceptions=True)
    assert requests.admitted == [HARBOR, QUAY]
    assert requests.gate.waiting == 0
    await requests.leave(QUAY)
    assert requests.gate.enter(HARBOR)


async def test_a_turn_that_comes_as_one_gives_up_goes_to_the_next() -> None:
    requests = Requests(Gate(1, lambda: 1))
    await requests.come(HARBOR, QUAY, PIER)
    requests.gate.leave(HARBOR)
    requests.tasks[0].cancel()
    await asyncio.gather(*requests.tasks, return_exceptions=True)
    assert requests.admitted == [HARBOR, PIER]


async def test_the_queue_of_a_team_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team_share, "MOST_WAITING_OF_TEAM", 3)
    requests = Requests(Gate(1, lambda: 1))
    await requests.come(*[HARBOR] * 4)
    with pytest.raises(TooManyWaiting):
        await requests.gate.wait(HARBOR)
    await requests.come(QUAY)
    assert requests.gate.waiting == 4
    for task in requests.tasks:
        task.cancel()


def test_a_team_alone_may_read_with_more_connections() -> None:
    seconds = 0.0
    shares = TeamShares(16, lambda: seconds)

    def admitted() -> int:
        count = 0
        while shares.gate(HARBOR, is_read=True).enter(HARBOR):
            count += 1
        for _ in range(count):
            shares.reads.leave(HARBOR)
        return count

    assert admitted() == 6
    shares.gate(QUAY, is_read=False)
    assert admitted() == 2
    seconds += CONTENDED_SECONDS
    assert admitted() == 6


@pytest.mark.parametrize("most", range(1, 40))
def test_every_pool_has_room_for_everybody(most: int) -> None:
    shares = TeamShares(most)
    for is_read in (True, False):
        assert shares.gate(HARBOR, is_read=is_read).enter(HARBOR)
    assert most < 3 or sum(shares.reads.enter(uuid4()) for _ in range(most)) < most


async def test_what_exceeds_a_share_beside_other_teams_makes_pauses() -> None:
    requests = Requests(Gate(2, lambda: 1, lambda: True))
    await requests.come(HARBOR, HARBOR)
    requests.gate.leave(HARBOR, 0.01)
    await requests.come(QUAY, PIER)
    assert requests.admitted == [HARBOR, QUAY, PIER], "others take the room meanwhile"
    await requests.leave(PIER)
    await asyncio.gather(*requests.tasks)
    assert requests.admitted[3:] == [HARBOR]


async def test_who_has_nothing_waiting_makes_no_pause() -> None:
    gate = Gate(2, lambda: 1, lambda: True)
    assert gate.enter(HARBOR)
    gate.leave(HARBOR, 60.0)
    assert gate.enter(HARBOR)
