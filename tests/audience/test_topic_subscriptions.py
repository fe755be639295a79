"""What contacts get of topics (topics.md section 2), and what is left of a deleted one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from kit.audience import a_contact, a_topic, chooses, some_contacts
from kit.broadcasts import made, sent, shown
from kit.brought import INVARIANTS
from kit.manual_world import clock_of, manual_world, run_jobs
from kit.world import Team
from pillarbox.emails.integrity.reconcile import reconcile
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.plugin import PeriodicJobs
from pillarbox.kernel.work import periodic
from pillarbox.topics import collector, subscriptions
from pillarbox.topics.collector import BATCH
from pillarbox.topics.subscriptions import TopicAddress

DAY = timedelta(days=1).total_seconds()

OPEN = """
    INSERT INTO deliveries (team_id, email_id, grp, destination, due_at, released, created_at)
    VALUES ($1, $2, 0, 'quay.example', $3::timestamptz + interval '9 days', true, $3)
"""


@asynccontextmanager
async def a_team(database_url: str, folder: Path) -> AsyncIterator[Team]:
    async with manual_world(database_url, folder) as pillarbox:
        yield await pillarbox.team()


async def effective(team: Team, contact_id: UUID) -> dict[UUID, str]:
    answer = await team.get(f"/contacts/{contact_id}/topics")
    return {UUID(topic["id"]): topic["subscription"] for topic in answer.json()["data"]}


async def refused(team: Team, topic_id: UUID, *addresses: str) -> set[str]:
    """Which of these addresses get no mail of the topic."""
    async with team.db.transaction() as db:
        wanted = [TopicAddress(team.id, topic_id, address) for address in addresses]
        return {found.address for found in await subscriptions.refused(db.connection, wanted)}


async def delete(team: Team, topic_id: UUID) -> None:
    assert (await team.call("DELETE", f"/topics/{topic_id}")).status_code == 200


async def collected(team: Team) -> str:
    """What the collector says that it did."""
    [found] = [job for job in team.world.app.need(PeriodicJobs) if job.kind == "topics.collect"]
    return await found.work()


async def counts(team: Team) -> tuple[int, int]:
    """How many topics and choices there are, deleted ones included."""
    pool = team.world.pool
    topics = await pool.fetchval("SELECT count(*) FROM topics WHERE team_id = $1", team.id)
    return topics, await pool.fetchval("SELECT count(*) FROM topic_choices WHERE team_id = $1", team.id)


@pytest.fixture
def team(database_url: str, tmp_path: Path) -> AbstractAsyncContextManager[Team]:
    return a_team(database_url, tmp_path)


async def test_a_choice_counts_and_without_one_the_default(team: Team) -> None:
    """topics.md section 5, point 1: the four rows, for contacts made before the topics and after them."""
    before = await a_contact(team, "before@quay.example")
    default_in, default_out = await a_topic(team, "opt_in"), await a_topic(team, "opt_out")
    after = await a_contact(team, "after@quay.example")
    addresses = ("before@quay.example", "after@quay.example")
    for contact in (before, after):
        assert await effective(team, contact) == {default_in: "opt_in", default_out: "opt_out"}
    assert await refused(team, default_in, *addresses) == set()
    assert await refused(team, default_out, *addresses) == set(addresses)
    for contact in (before, after):
        await chooses(team, contact, default_in, "opt_out")
        await chooses(team, contact, default_out, "opt_in")
        assert await effective(team, contact) == {default_in: "opt_out", default_out: "opt_in"}
    assert await refused(team, default_in, *addresses) == set(addresses)
    assert await refused(team, default_out, *addresses) == set()
    for contact in (before, after):
        await chooses(team, contact, default_in, "opt_in")
        await chooses(team, contact, default_out, "opt_out")
        assert await effective(team, contact) == {default_in: "opt_in", default_out: "opt_out"}


async def test_who_has_unsubscribed_from_everything_gets_nothing_and_keeps_the_choice(team: Team) -> None:
    contact = await a_contact(team, "gone@quay.example", unsubscribed=True)
    topic = await a_topic(team, "opt_in")
    await chooses(team, contact, topic, "opt_in")
    assert await effective(team, contact) == {topic: "opt_in"}
    assert await refused(team, topic, "gone@quay.example") == {"gone@quay.example"}


async def test_who_is_no_contact_has_the_default(team: Team) -> None:
    assert await refused(team, await a_topic(team, "opt_in"), "new@quay.example") == set()
    assert await refused(team, await a_topic(team, "opt_out"), "new@quay.example") == {"new@quay.example"}
    assert await refused(team, uuid4(), "new@quay.example") == {"new@quay.example"}


async def test_choices_of_other_teams_do_not_count(team: Team) -> None:
    """Several teams are asked about at once, each with its own contacts and topics."""
    other = await team.world.team("Quay")
    topics = {one.id: await a_topic(one, "opt_in") for one in (team, other)}
    contact = await a_contact(team, "ada@quay.example")
    await a_contact(other, "ada@quay.example")
    await chooses(team, contact, topics[team.id], "opt_out")
    wanted = [TopicAddress(one, topics[one], "ada@quay.example") for one in topics]
    crossed = [TopicAddress(team.id, topics[other.id], "ada@quay.example")]
    async with team.db.transaction() as db:
        assert await subscriptions.refused(db.connection, [*wanted, *crossed]) == {wanted[0], *crossed}
        assert await subscriptions.refused(db.connection, []) == set()


async def test_a_deleted_topic_is_not_shown_but_still_honoured(team: Team) -> None:
    """topics.md section 5, point 8, as far as the rule goes: who had refused gets nothing that is still to go
    out, and the default at deletion time counts for everybody else."""
    contact = await a_contact(team, "ada@quay.example")
    default_in, default_out = await a_topic(team, "opt_in"), await a_topic(team, "opt_out")
    await chooses(team, contact, default_in, "opt_out")
    await delete(team, default_in)
    await delete(team, default_out)
    assert await effective(team, contact) == {}
    assert await refused(team, default_in, "ada@quay.example", "kim@quay.example") == {"ada@quay.example"}
    assert await refused(team, default_out, "kim@quay.example") == {"kim@quay.example"}


async def test_a_topic_is_removed_with_its_choices_when_no_mail_is_open_any_more(team: Team) -> None:
    clock = clock_of(team.world)
    await team.domain()
    contact = await a_contact(team, "ada@quay.example")
    topic, kept = await a_topic(team), await a_topic(team)
    for one in (topic, kept):
        await chooses(team, contact, one, "opt_out")
    scheduled = await team.send(scheduled_at=(clock.now() + timedelta(days=20)).isoformat())
    clock.advance(60)
    await delete(team, topic)
    assert await collected(team) == "0 deleted topics, 0 choices of them"
    clock.advance(10 * DAY)
    assert await collected(team) == "0 deleted topics, 0 choices of them"
    assert await refused(team, topic, "ada@quay.example") == {"ada@quay.example"}
    clock.advance(11 * DAY)
    await team.world.turn()
    assert (await team.email(scheduled))["last_event"] == "delivered"
    assert await counts(team) == (2, 2)
    assert await collected(team) == "1 deleted topics, 1 choices of them"
    assert await counts(team) == (1, 1)
    assert await effective(team, contact) == {kept: "opt_out"}


async def test_mail_that_came_after_the_deletion_keeps_nothing(team: Team) -> None:
    clock = clock_of(team.world)
    await team.domain()
    topic = await a_topic(team)
    await delete(team, topic)
    clock.advance(2 * DAY)
    await team.send(scheduled_at=(clock.now() + timedelta(days=20)).isoformat())
    assert await collected(team) == "1 deleted topics, 0 choices of them"
    assert await counts(team) == (0, 0)


async def test_a_broadcast_keeps_its_topic_until_its_last_copy_is_through(team: Team) -> None:
    """Its copies are made long after the deletion, and ask once more what people chose."""
    clock, topic = clock_of(team.world), await a_topic(team, "opt_out")
    broadcast_id = await made(team, topic_id=str(topic))
    [*_, member] = await team.world.pool.fetch("SELECT contact_id FROM segment_members")
    await chooses(team, member["contact_id"], topic, "opt_in")
    await sent(team, broadcast_id, scheduled_at=(clock.now() + timedelta(days=20)).isoformat())
    await delete(team, topic)
    clock.advance(10 * DAY)
    assert await collected(team) == "0 deleted topics, 0 choices of them"
    clock.advance(11 * DAY)
    await run_jobs(team.world)
    assert (await shown(team, broadcast_id))["status"] == "queued"
    assert await collected(team) == "0 deleted topics, 0 choices of them"
    while await team.world.turn():
        pass
    [copy] = await team.world.pool.fetch("SELECT id, last_event FROM emails")
    assert copy["last_event"] == "delivered"
    clock.advance(2)
    await run_jobs(team.world)
    assert (await shown(team, broadcast_id))["status"] == "sent"
    await team.world.pool.execute(OPEN, team.id, copy["id"], clock.now())
    clock.advance(2 * DAY)
    assert await collected(team) == "0 deleted topics, 0 choices of them"
    await team.world.pool.execute("DELETE FROM deliveries")
    assert await collected(team) == "1 deleted topics, 1 choices of them"


async def test_mail_of_one_team_keeps_no_topic_of_another(team: Team) -> None:
    other, clock = await team.world.team("Quay"), clock_of(team.world)
    await other.domain()
    await other.send(
        from_="notes@harbor.example", scheduled_at=(clock.now() + timedelta(days=20)).isoformat()
    )
    for one in (team, other):
        await delete(one, await a_topic(one))
    clock.advance(2 * DAY)
    assert await collected(team) == "1 deleted topics, 0 choices of them"
    assert await counts(team) == (0, 0)
    assert await counts(other) == (1, 0)


async def test_many_choices_are_removed_in_batches_and_no_others(team: Team) -> None:
    topics = [await a_topic(team) for _ in range(3)]
    members = await some_contacts(team, BATCH + 7)
    await team.world.pool.execute(
        """
            INSERT INTO topic_choices (team_id, contact_id, topic_id, subscription, chosen_at)
            SELECT $1, c, t, 'opt_out', now() FROM unnest($2::uuid[]) AS c, unnest($3::uuid[]) AS t
            """,
        team.id,
        members,
        topics,
    )
    await delete(team, topics[0])
    await delete(team, topics[2])
    clock_of(team.world).advance(1.5 * DAY)
    assert await collected(team) == f"2 deleted topics, {2 * len(members)} choices of them"
    assert await counts(team) == (1, len(members))
    assert await effective(team, members[0]) == {topics[1]: "opt_out"}
    assert (await reconcile(team.world.pool, 10, INVARIANTS)).gaps == []


async def test_the_collector_runs_by_itself(team: Team) -> None:
    app, clock = team.world.app, clock_of(team.world)
    await delete(team, await a_topic(team))
    clock.advance(2 * DAY)
    await periodic.ensure(team.world.pool, app.need(PeriodicJobs), app.need(Ids), clock)
    while await run_jobs(team.world):
        clock.advance(0.001)
    assert await counts(team) == (0, 0)


async def test_more_topics_than_are_removed_at_once(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector, "TOPICS", 2)
    async with a_team(database_url, tmp_path) as team:
        for _ in range(5):
            await delete(team, await a_topic(team))
        clock_of(team.world).advance(2 * DAY)
        assert await collected(team) == "5 deleted topics, 0 choices of them"


async def test_choices_without_topic_or_contact_are_named(team: Team) -> None:
    contact, topic = await a_contact(team, "ada@quay.example"), await a_topic(team)
    stray = uuid4()
    await chooses(team, contact, stray, "opt_in")
    await chooses(team, stray, topic, "opt_out")
    gaps = (await reconcile(team.world.pool, 10, INVARIANTS)).gaps
    assert {(gap.name, str(gap.ids["topic_id"]), str(gap.ids["contact_id"])) for gap in gaps} == {
        ("choice_without_topic", str(stray), str(contact)),
        ("choice_without_contact", str(topic), str(stray)),
    }
