"""The folders of threads (inboxes.md section 8) against a model, one change at a time and several at once.

A history is a list of rounds; what a round has happens at the same moment. Whatever the order was that the
lock of the inbox gave it, the answers and what is left must be those of one of the orders.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kit.inbox_arrivals import arrives, leaves, purge_after
from kit.inbox_rows import Inbox, Thread, an_inbox, inbox_world
from pillarbox.inboxes.folders import KEPT_IN_TRASH
from pillarbox.inboxes.inbox.invariants import INVARIANTS as OF_INBOXES
from pillarbox.inboxes.threads.invariants import INVARIANTS as OF_THREADS

Kind = Literal["patch", "delete", "labels", "unlabel", "arrives", "spam", "leaves", "purge", "shown"]

LABELS = ("First", "Second")
MOST_AT_ONCE = 3


@dataclass(frozen=True)
class Step:
    """Something that happens to the thread."""

    kind: Kind
    folder: str | None = None
    read: bool | None = None
    labels: tuple[int, ...] = ()


@dataclass(frozen=True)
class Model:
    """A thread as section 8 describes it; `folder` is None when it is gone."""

    folder: str | None
    inbound: int
    outbound: int
    unread: int
    labels: frozenset[int] = frozenset()

    @property
    def shown(self) -> dict[str, Any]:
        return {"folder": self.folder, "labels": sorted(self.labels), "read": self.unread == 0}

    @property
    def counted(self) -> int:
        return int(self.folder == "inbox" and self.unread > 0)

    def after(self, step: Step) -> tuple[Model, Any]:
        """The thread after a step, and what the caller is told."""
        if step.kind in ("arrives", "spam", "leaves"):
            return self._joined(step.kind), None
        if step.kind == "purge":
            return (replace(self, folder=None) if self.folder == "trash" else self), None
        if self.folder is None:
            return self, 404
        match step.kind:
            case "patch":
                changed = self._marked(step.read)
                changed = replace(changed, folder=step.folder or changed.folder)
                changed = replace(changed, labels=changed.labels | set(step.labels))
                return changed, changed.shown
            case "delete":
                return replace(self, folder="trash"), self.folder != "trash"
            case "labels":
                return replace(self, labels=frozenset(step.labels)), sorted(set(step.labels))
            case "unlabel":
                left = self.labels - set(step.labels)
                return replace(self, labels=left), sorted(left)
        return self, self.shown

    def _marked(self, read: bool | None) -> Model:
        if read is None:
            return self
        return replace(self, unread=0 if read else self.unread or self.inbound)

    def _joined(self, kind: Kind) -> Model:
        """What does not find its thread opens another one, which is not looked at here."""
        if self.folder is None or (kind == "spam" and self.folder != "spam"):
            return self
        if kind == "leaves":
            folder = self.folder
            if folder == "trash":
                folder = "inbox" if self.inbound else "sent"
            return replace(self, folder=folder, outbound=self.outbound + 1)
        folder = "inbox" if kind == "arrives" and self.folder in ("archive", "sent", "trash") else self.folder
        return replace(self, folder=folder, inbound=self.inbound + 1, unread=self.unread + 1)


def outcomes(model: Model, steps: Sequence[Step]) -> list[tuple[Model, list[Any]]]:
    """What may be left of these steps, and told, in each order."""
    found = []
    for order in itertools.permutations(range(len(steps))):
        told: list[Any] = [None] * len(steps)
        state = model
        for index in order:
            state, told[index] = state.after(steps[index])
        if (state, told) not in found:
            found.append((state, told))
    return found


class Player:
    """Does the steps to a real thread."""

    def __init__(self, inbox: Inbox, thread: Thread, labels: Sequence[str]) -> None:
        self.inbox = inbox
        self.thread = thread
        self.labels = labels

    async def does(self, step: Step) -> Any:
        match step.kind:
            case "arrives" | "spam":
                await arrives(self.thread, is_spam=step.kind == "spam")
                return None
            case "leaves":
                await leaves(self.thread)
                return None
            case "purge":
                await purge_after(self.inbox, KEPT_IN_TRASH + timedelta(hours=1))
                return None
            case "patch":
                given_read = {} if step.read is None else {"read": step.read}
                given_folder = {} if step.folder is None else {"folder": step.folder}
                label = {"label_id": self.labels[step.labels[0]]} if step.labels else {}
                return self._summary(await self.thread.patch(**given_read, **given_folder, **label))
            case "delete":
                answer = await self.thread.delete()
                return 404 if answer.status_code == 404 else answer.json()["deleted"]
            case "labels":
                return self._set(await self.thread.put_labels([self.labels[one] for one in step.labels]))
            case "unlabel":
                return self._set(await self.thread.delete(f"/labels/{self.labels[step.labels[0]]}"))
        return self._summary(await self.thread.get())

    def _summary(self, answer: Any) -> Any:
        if answer.status_code == 404:
            return 404
        assert answer.status_code == 200, answer.text
        found = answer.json()
        return {"folder": found["folder"], "labels": self._numbers(found["labels"]), "read": found["read"]}

    def _set(self, answer: Any) -> Any:
        if answer.status_code == 404:
            return 404
        assert answer.status_code == 200, answer.text
        return self._numbers(answer.json()["data"])

    def _numbers(self, labels: Sequence[Any]) -> list[int]:
        return [self.labels.index(label["id"]) for label in labels]

    async def state(self) -> Model:
        row = await self.inbox.team.world.pool.fetchrow(
            "SELECT folder, inbound, messages, unread FROM inbox_threads WHERE team_id = $1 AND id = $2",
            self.inbox.team.id,
            self.thread.id,
        )
        if row is None:
            return Model(None, 0, 0, 0)
        shown = (await self.thread.get()).json()
        labels = frozenset(self._numbers(shown["labels"]))
        outbound = row["messages"] - row["inbound"]
        return Model(
            folder=row["folder"],
            inbound=row["inbound"],
            outbound=outbound,
            unread=row["unread"],
            labels=labels,
        )


def same(left: Model, right: Model) -> bool:
    return left == right or (left.folder is None and right.folder is None)


async def play(inbox: Inbox, first: str, rounds: Sequence[Sequence[Step]]) -> None:
    direction = "outbound" if first == "sent" else "inbound"
    thread = await inbox.thread(folder=first, direction=direction)
    player = Player(inbox, thread, [await inbox.label(name) for name in LABELS])
    model = Model(
        first, int(direction == "inbound"), int(direction == "outbound"), int(direction == "inbound")
    )
    for steps in rounds:
        possible = outcomes(model, steps)
        told = list(await asyncio.gather(*(player.does(step) for step in steps)))
        state = await player.state()
        matching = [left for left, said in possible if said == told and same(left, state)]
        assert matching, f"{model} and {steps}: {told}, {state}; possible: {possible}"
        model = matching[0]
        others = "SELECT count(*) FROM inbox_threads WHERE inbox_id = $2 AND folder = 'inbox' AND unread > 0"
        others += " AND team_id = $1 AND id <> $3"
        more = await inbox.team.db.value(others, inbox.id, thread.id)
        assert (await inbox.counts())[0] == model.counted + more
    for invariant in (*OF_INBOXES, *OF_THREADS):
        broken = await inbox.team.world.pool.fetch(invariant.sql, 10, *invariant.args)
        assert [dict(row) for row in broken] == [], invariant.name


def steps_of(one_by_one: bool) -> st.SearchStrategy[list[list[Step]]]:
    folders = st.sampled_from(["inbox", "archive", "spam", "trash"])
    label = st.sampled_from([(0,), (1,)])
    step = st.one_of(
        st.builds(lambda folder: Step("patch", folder=folder), folders),
        st.builds(
            lambda folder, read, labels: Step("patch", folder=folder, read=read, labels=labels),
            st.none() | folders,
            st.booleans(),
            st.just(()) | label,
        ),
        st.just(Step("delete")),
        st.builds(lambda labels: Step("labels", labels=labels), st.sampled_from([(), (0,), (1,), (0, 1)])),
        st.builds(lambda labels: Step("unlabel", labels=labels), label),
        st.just(Step("arrives")),
        st.just(Step("spam")),
        st.just(Step("leaves")),
        st.just(Step("purge")),
        st.just(Step("shown")),
    )
    most = 1 if one_by_one else MOST_AT_ONCE
    return st.lists(st.lists(step, min_size=1 if one_by_one else 2, max_size=most), min_size=1, max_size=8)


@pytest.mark.parametrize("one_by_one", [True, False], ids=["one by one", "several at once"])
def test_threads_behave_as_section_8_says(
    database_url: str, tmp_path: Path, one_by_one: bool, request: pytest.FixtureRequest
) -> None:
    examples = 400 if request.config.getoption("--slow") else 25
    names = (f"box{number}" for number in itertools.count())
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        first_inbox = runner.run(stack.enter_async_context(inbox_world(database_url, tmp_path)))

        @settings(
            max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck)
        )
        @given(st.sampled_from(["inbox", "archive", "spam", "sent"]), steps_of(one_by_one))
        def check(first: str, rounds: list[list[Step]]) -> None:
            async def one() -> None:
                await play(await an_inbox(first_inbox.team, next(names)), first, rounds)

            runner.run(one())

        try:
            check()
        finally:
            runner.run(stack.aclose())
