"""A DKIM key is replaced without one mail that cannot be verified (DKIM-04, contract decision 29)."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from pathlib import Path

import pytest

from kit.dkim_verifier import verify
from kit.domain_dns import Added, Place, checked
from kit.manual_world import clock_of
from kit.smtp_sink import Sink
from kit.webhook_events import published_events, published_kinds, subscribe
from kit.world import mail
from pillarbox.domains import keys
from pillarbox.domains.context import DomainContext
from pillarbox.domains.keys import KeyState, Rotation
from pillarbox.kernel.wire.problems import NotFound

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


async def rotated(domain: Added) -> Rotation:
    return await keys.rotate(domain.db, domain.uuid, domain.place.world.app.need(DomainContext))


async def listed(domain: Added) -> dict[str, KeyState]:
    found = await keys.listed(domain.db, domain.uuid, domain.place.now())
    return {key.selector: key.state for key in found}


def publish(domain: Added, rotation: Rotation) -> None:
    name = f"{rotation.key.selector}._domainkey.{domain.name}"
    domain.place.dns.put(name, "TXT", f"p={rotation.key.public_key}")


async def selector_of_a_mail(at: Place, sink: Sink) -> str:
    """The selector of a mail that is sent now; its signature holds by what is in DNS now."""
    assert (await at.team.post("/emails", mail())).status_code == 200
    assert await at.world.turn() == 1
    tags = verify(sink.received[-1].content, lambda name: next(iter(at.dns.values(name, "TXT")), None))
    return tags["s"]


async def test_dkim_04_publish_first_then_switch_then_drop(database_url: str, tmp_path: Path) -> None:
    async with (
        Sink() as sink,
        checked(database_url, tmp_path, route=f"relay:smtp://127.0.0.1:{sink.port}") as at,
    ):
        domain = await (await at.adds()).verified()
        await subscribe(at.team)
        before = await domain.shown()
        assert await selector_of_a_mail(at, sink) == "pillarbox"

        rotation = await rotated(domain)
        assert (rotation.new, rotation.key.selector) == (True, "pillarbox2")
        assert await listed(domain) == {"pillarbox": KeyState.SIGNING, "pillarbox2": KeyState.WAITING}
        assert await domain.shown() == before, "`records` shows the active selector"
        assert await at.checks() == 1
        assert (await domain.results())["dkim_next"].match == "absent"
        assert await domain.shown() == before
        assert await selector_of_a_mail(at, sink) == "pillarbox"
        assert await published_events(at.team) == []

        publish(domain, rotation)
        assert await at.checks(MINUTE) == 1
        after = await domain.shown()
        assert after["status"] == "verified"
        assert after["records"][2] == {
            "record": "DKIM", "name": "pillarbox2._domainkey", "type": "TXT", "ttl": "Auto",
            "status": "verified", "value": f"p={rotation.key.public_key}",
        }  # fmt: skip
        assert await published_kinds(at.team) == ["domain.updated"]
        clock_of(at.world).advance(1)
        assert await selector_of_a_mail(at, sink) == "pillarbox2"
        assert await listed(domain) == {"pillarbox": KeyState.RETIRING, "pillarbox2": KeyState.SIGNING}

        await at.checks_until(at.now() + 6 * DAY)
        assert set(await listed(domain)) == {"pillarbox", "pillarbox2"}
        await at.checks_until(at.now() + 2 * DAY)
        assert await listed(domain) == {"pillarbox2": KeyState.SIGNING}
        assert await at.world.pool.fetchval("SELECT count(*) FROM dkim_keys") == 1
        assert (await domain.shown())["status"] == "verified"


async def test_the_old_key_stays_as_long_as_mail_is_tried(database_url: str, tmp_path: Path) -> None:
    async with checked(database_url, tmp_path, delivery_window="240h") as at:
        domain = await (await at.adds()).verified()
        publish(domain, await rotated(domain))
        await at.checks()
        [old, _] = await keys.listed(domain.db, domain.uuid, at.now())
        assert (old.state, old.retires_at) == (KeyState.RETIRING, at.now() + timedelta(hours=240))


@pytest.fixture
def place(database_url: str, tmp_path: Path) -> AbstractAsyncContextManager[Place]:
    return checked(database_url, tmp_path)


async def test_one_key_waits_at_a_time(place: Place) -> None:
    domain = await (await place.adds()).verified()
    first, second = await rotated(domain), await rotated(domain)
    assert (second.new, second.key) == (False, first.key)
    publish(domain, first)
    await place.checks()
    third = await rotated(domain)
    assert (third.new, third.key.selector) == (True, "pillarbox3")


async def test_a_key_that_waits_is_looked_for_on_the_schedule_and_then_daily(place: Place) -> None:
    domain = await (await place.adds()).verified()
    await rotated(domain)
    begin = place.now()
    times = [time - begin for time in await place.checks_until(begin + 5 * DAY - MINUTE)]
    assert [time // MINUTE for time in times][:8] == [0, 1, 2, 5, 10, 30, 60, 120]
    assert [round(time / HOUR) for time in times[-3:]] == [71, 72, 96]
    assert await listed(domain) == {"pillarbox": KeyState.SIGNING, "pillarbox2": KeyState.WAITING}


async def test_an_old_record_that_went_too_early_is_healed_by_the_new_one(place: Place) -> None:
    domain = await (await place.adds()).verified()
    domain.withdraws("DKIM")
    await place.checks(2 * DAY)
    assert (await domain.states())["DKIM TXT"] == "temporary_failure"
    publish(domain, await rotated(domain))
    await place.checks()
    assert (await domain.states())["DKIM TXT"] == "verified"


async def test_the_key_before_at_the_new_selector_is_recognised(place: Place) -> None:
    domain = await (await place.adds()).verified()
    old = domain.made["records"][2]["value"]
    publish(domain, await rotated(domain))
    await place.checks()
    place.dns.put("pillarbox2._domainkey.harbor.example", "TXT", old)
    await place.checks(2 * DAY)
    assert (await domain.results())["dkim"].advice[0].code == "old_key"


async def test_what_has_no_keys_to_rotate(place: Place) -> None:
    domain = await place.adds()
    await place.team.call("DELETE", f"/domains/{domain.id}")
    with pytest.raises(NotFound):
        await rotated(domain)
    other = await place.world.team("Other")
    theirs = await place.adds("quay.example")
    with pytest.raises(NotFound):
        await keys.rotate(other.db, theirs.uuid, place.world.app.need(DomainContext))
    assert await place.world.pool.fetchval("SELECT count(*) FROM dkim_keys") == 1
