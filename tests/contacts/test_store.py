"""What other parts do to contacts inside their transactions."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from kit.audience import a_property, a_segment, a_topic, told_team
from kit.webhook_events import published_events
from kit.world import Team
from pillarbox.contacts.change import NOTHING, ContactChange, ContactMemberships
from pillarbox.contacts.event_data import audience_of
from pillarbox.contacts.prometheus import CHANGES
from pillarbox.contacts.store import Contacts
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.email_address import email_address
from pillarbox.kernel.wire.problems import InvalidField, NotFound

ADA = email_address("Ada.King@Analytical.example")


def contacts(team: Team) -> Contacts:
    return team.world.app.need(Contacts)


async def kinds(team: Team) -> list[str]:
    return [event["type"] for event in await published_events(team)]


async def upsert(
    team: Team, change: ContactChange = NOTHING, belonging: ContactMemberships | None = None
) -> UUID:
    async with team.db.transaction() as db:
        stored = await contacts(team).upsert(db, ADA, change, belonging or ContactMemberships())
    return stored.id


@pytest.fixture
def team(database_url: str, tmp_path: Path) -> AbstractAsyncContextManager[Team]:
    return told_team(database_url, tmp_path)


async def test_an_upsert_makes_a_contact_once_and_then_changes_what_is_given(team: Team) -> None:
    first = await upsert(team, ContactChange(first_name="Ada", unsubscribed=True))
    second = await upsert(team, ContactChange(last_name="King"))
    assert first == second
    row = await team.world.pool.fetchrow("SELECT * FROM contacts")
    assert (row["address"], row["email"]) == ("ada.king@analytical.example", None)
    assert (row["first_name"], row["last_name"], row["unsubscribed"]) == ("Ada", "King", True)
    assert await kinds(team) == ["contact.created", "contact.updated"]


async def test_an_upsert_that_changes_nothing_says_nothing(team: Team) -> None:
    await upsert(team, ContactChange(first_name="Ada"))
    before = await team.world.pool.fetchval("SELECT updated_at FROM contacts")
    async with team.db.transaction() as db:
        stored = await contacts(team).upsert(db, ADA, ContactChange(first_name="Ada", unsubscribed=False))
    assert (stored.is_new, stored.has_changed) == (False, False)
    assert await team.world.pool.fetchval("SELECT updated_at FROM contacts") == before
    assert await kinds(team) == ["contact.created"]


async def test_properties_merge_under_their_numbers(team: Team) -> None:
    await a_property(team, "plan")
    await a_property(team, "seats", "number")
    contact = await upsert(team, ContactChange(properties={"plan": "pro", "seats": 12}))
    async with team.db.transaction() as db:
        assert await contacts(team).change(db, contact, ContactChange(properties={"plan": None, "seats": 12}))
    assert await team.world.pool.fetchval("SELECT properties::text FROM contacts") == '{"2": 12}'


async def test_an_unknown_property_undoes_the_whole_call(team: Team) -> None:
    with pytest.raises(InvalidField, match="There is no property `plan`"):
        await upsert(team, ContactChange(first_name="Ada", properties={"plan": "pro"}))
    assert await team.world.pool.fetchval("SELECT count(*) FROM contacts") == 0


async def test_segments_and_topics_of_an_upsert_are_events_of_the_contact(team: Team) -> None:
    segment, news, tides = (
        await a_segment(team),
        await a_topic(team, "opt_in"),
        await a_topic(team, "opt_out"),
    )
    belonging = ContactMemberships([segment], {news: "opt_out", tides: "opt_out"})
    contact = await upsert(team, NOTHING, belonging)
    created, chosen = await published_events(team)
    assert created["data"]["segment_ids"] == [str(segment)]
    assert created["data"]["audience_id"] == str(audience_of(team.id))
    assert list(created["data"]) == [
        "id", "audience_id", "segment_ids", "created_at", "updated_at", "email", "first_name",
        "last_name", "unsubscribed",
    ]  # fmt: skip
    assert chosen["data"] == {
        "email": "ada.king@analytical.example",
        "topics": [{"id": str(news), "subscription": "opt_out"}],
    }
    assert await upsert(team, NOTHING, belonging) == contact
    assert len(await published_events(team)) == 2
    assert await team.world.pool.fetchval("SELECT count(*) FROM topic_choices") == 2


@pytest.mark.parametrize(
    "belonging",
    [ContactMemberships([uuid4()]), ContactMemberships(topics={uuid4(): "opt_in"})],
    ids=["segment", "topic"],
)
async def test_what_does_not_exist_undoes_the_upsert(team: Team, belonging: ContactMemberships) -> None:
    with pytest.raises(NotFound):
        await upsert(team, NOTHING, belonging)
    assert await team.world.pool.fetchval("SELECT count(*) FROM contacts") == 0


async def test_unsubscribing_twice_is_one_event(team: Team) -> None:
    contact = await upsert(team)
    for expected in (True, False):
        async with team.db.transaction() as db:
            assert await contacts(team).set_unsubscribed(db, contact, unsubscribed=True) is expected
    assert await kinds(team) == ["contact.created", "contact.updated"]
    with pytest.raises(NotFound):
        async with team.db.transaction() as db:
            await contacts(team).set_unsubscribed(db, uuid4(), unsubscribed=True)


async def test_joining_and_leaving_a_segment(team: Team) -> None:
    contact, first, second = await upsert(team), await a_segment(team), await a_segment(team)
    async with team.db.transaction() as db:
        assert await contacts(team).add_to_segments(db, contact, [second])
        assert await contacts(team).add_to_segments(db, contact, [first, second])
        assert not await contacts(team).add_to_segments(db, contact, [first])
        assert await contacts(team).remove_from_segment(db, contact, second)
        assert not await contacts(team).remove_from_segment(db, contact, second)
    events = await published_events(team)
    assert [event["data"]["segment_ids"] for event in events] == [
        [], [str(second)], [str(second), str(first)], [str(first)]
    ]  # fmt: skip


async def test_a_deleted_contact_leaves_nothing_and_is_told_with_its_last_state(team: Team) -> None:
    segment, topic = await a_segment(team), await a_topic(team, "opt_in")
    contact = await upsert(
        team, ContactChange(first_name="Ada"), ContactMemberships([segment], {topic: "opt_out"})
    )
    async with team.db.transaction() as db:
        await contacts(team).delete(db, contact)
    for table in ("contacts", "segment_members", "topic_choices"):
        assert await team.world.pool.fetchval(f"SELECT count(*) FROM {table}") == 0
    last = (await published_events(team))[-1]
    assert last["type"] == "contact.deleted"
    assert (last["data"]["first_name"], last["data"]["segment_ids"]) == ("Ada", [str(segment)])


async def changed(team: Team, db: TeamDb, contact: UUID) -> UUID:
    await contacts(team).set_unsubscribed(db, contact, unsubscribed=True)
    return contact


async def test_what_was_committed_is_counted(team: Team) -> None:
    before = CHANGES.value(("contact.created",)), CHANGES.value(("contact.updated",))
    contact = await upsert(team)
    with pytest.raises(NotFound):
        async with team.db.transaction() as db:
            await contacts(team).add_to_segments(db, await changed(team, db, contact), [uuid4()])
    assert (CHANGES.value(("contact.created",)), CHANGES.value(("contact.updated",))) == (
        before[0] + 1,
        before[1],
    )
