"""Parents that come late, and answers that share a parent nobody here has seen (inboxes.md 9.4)."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from inboxes.threading.test_join import joined, message
from kit.inbox_rows import an_inbox
from kit.world import World, world
from pillarbox.inboxes.threading import queries
from pillarbox.inboxes.threading.new_messages import NewMessage

COUNT = "SELECT count(*) FROM inbox_awaited_messages WHERE team_id = $1"


async def test_a_late_parent_and_its_children_are_one_thread(running: World) -> None:
    inbox = await an_inbox(await running.team())
    one = message(inbox, 1, message_id="<b@x>", earlier_ids=("a@x",), names_earlier=True)
    two = message(inbox, 2, message_id="<c@x>", earlier_ids=("a@x",), names_earlier=True)
    parent = message(inbox, 3, message_id="<a@x>", subject="Other words")
    found = [(await joined(inbox, each))[0].thread_id for each in (one, two, parent)]
    assert len(set(found)) == 1
    other = await an_inbox(inbox.team, "desk")
    [apart] = await joined(other, message(other, 4, message_id="<a@x>"))
    assert apart.thread_id not in found


async def test_a_thread_does_not_take_messages_that_use_the_id_of_its_late_parent_again(
    running: World,
) -> None:
    inbox = await an_inbox(await running.team())
    [first] = await joined(
        inbox, message(inbox, message_id="<b@x>", earlier_ids=("a@x",), names_earlier=True)
    )
    [parent] = await joined(inbox, message(inbox, 1, message_id="<a@x>"))
    [again] = await joined(inbox, message(inbox, 2, message_id="<a@x>", body_key=b"2" * 16))
    assert first.thread_id == parent.thread_id != again.thread_id


async def test_spam_waits_for_nobody(running: World) -> None:
    inbox = await an_inbox(await running.team())
    spam = message(inbox, message_id="<b@x>", earlier_ids=("a@x",), names_earlier=True, is_spam=True)
    [bad] = await joined(inbox, spam)
    [good] = await joined(inbox, message(inbox, 1, message_id="<a@x>"))
    assert bad.thread_id != good.thread_id
    assert await running.pool.fetchval(COUNT, inbox.team.id) == 0


async def test_answers_at_the_same_time_are_one_thread(running: World) -> None:
    inbox = await an_inbox(await running.team())
    answers = [
        message(inbox, n, message_id=f"<{n}@x>", earlier_ids=("a@x",), names_earlier=True) for n in range(6)
    ]
    found = await asyncio.gather(*(joined(inbox, one) for one in answers))
    assert len({one.thread_id for [one] in found}) == 1


async def test_an_inbox_waits_for_so_many_and_so_long(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "MOST_AWAITED", 5)
    async with world(database_url, tmp_path) as pillarbox:
        inbox = await an_inbox(await pillarbox.team())
        for n in range(20):
            await joined(
                inbox, message(inbox, n, message_id=f"<{n}@x>", earlier_ids=(f"p{n}@x",), names_earlier=True)
            )
        assert await pillarbox.pool.fetchval(COUNT, inbox.team.id) <= 7
        aged = "UPDATE inbox_awaited_messages SET at = at - $1::interval"
        await pillarbox.pool.execute(aged, timedelta(days=31))
        await joined(inbox, message(inbox, message_id="<z@x>", earlier_ids=("y@x",), names_earlier=True))
        assert await pillarbox.pool.fetchval(COUNT, inbox.team.id) == 1
        many = tuple(f"m{n}@x" for n in range(100))
        await joined(inbox, message(inbox, message_id="<w@x>", earlier_ids=many, names_earlier=True))
        assert await pillarbox.pool.fetchval(COUNT, inbox.team.id) <= 21


async def test_any_order_of_arrival_gives_the_same_threads(running: World) -> None:
    """Property: messages that name all before them, as mail programs do, some of which never come."""
    team = await running.team()
    for seed in range(12):
        chance = random.Random(seed)
        inbox = await an_inbox(team, f"help{seed}")
        trees: dict[str, int] = {}
        mails: list[NewMessage] = []
        for tree in range(3):
            paths: list[tuple[str, ...]] = []
            for n in range(7):
                above = chance.choice(paths) if paths else ()
                own = f"{seed}.{tree}.{n}@x"
                paths.append((own, *above))
                mails.append(
                    message(
                        inbox,
                        len(mails),
                        message_id=f"<{own}>",
                        subject=f"Tree {own}",
                        earlier_ids=above,
                        names_earlier=bool(above),
                    )
                )
                trees[own] = tree
        lost = {chance.randrange(len(mails)) for _ in range(4)}
        arriving = [one for place, one in enumerate(mails) if place not in lost]
        chance.shuffle(arriving)
        threads: dict[int, set[object]] = {}
        while arriving:
            size = chance.randint(1, 4)
            batch, arriving = arriving[:size], arriving[size:]
            batch = [replace(one, id=inbox.new_id()) for one in batch]
            for one, outcome in zip(batch, await joined(inbox, *batch), strict=True):
                tree = trees[(one.message_id or "").strip("<>")]
                threads.setdefault(tree, set()).add(outcome.thread_id)
        assert all(len(ids) == 1 for ids in threads.values()), seed
        assert len(set().union(*threads.values())) == len(threads)
