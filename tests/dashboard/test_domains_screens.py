"""Screens of domains: adding, verifying, settings, keys, claims, files, deleting, and who may do so."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import dns.zone
import httpx
import pytest

from kit.domain_dns import Added, Place, checked
from kit.people import Visit, a_person, logged_in, text_of
from kit.world import Team
from pillarbox.dashboard.domains.domain_page import dotless_host
from pillarbox.domains.dns.zone import ZoneLine
from pillarbox.people.roles import TeamRole

LIST = "/dashboard/domains"
NAME = "harbor.example"


@pytest.fixture
@asynccontextmanager
async def place(database_url: str, tmp_path: Path) -> AsyncIterator[Place]:
    async with checked(database_url, tmp_path) as found:
        yield found


async def browser(team: Team, role: TeamRole = TeamRole.OWNER) -> Visit:
    """A browser in which somebody of the team has logged in."""
    person = await a_person(team, f"{role.value}-{uuid4().hex[:6]}@quay.example", role)
    return await logged_in(team.world, person)


async def sent(ada: Visit, path: str, action: str, **fields: Any) -> httpx.Response:
    """What is shown after a form of this page was sent."""
    return await ada.follow(await ada.send(path, action, **fields))


async def test_a_domain_is_added_and_verified(place: Place) -> None:
    ada = await browser(place.team)
    assert "No domain yet" in (await ada.get(LIST)).text
    form = {"name": NAME, "sending": "on", "tracking_subdomain": "links", "click_tracking": "on"}
    answer = await sent(ada, f"{LIST}/add", f"{LIST}/add", **form)
    assert "The domain is added." in answer.text
    [domain] = (await place.team.get("/domains")).json()["data"]
    assert (domain["click_tracking"], domain["open_tracking"]) == (True, False)
    assert domain["tracking_subdomain"] == "links"
    one = f"{LIST}/{domain['id']}"
    for record in (await place.team.get(f"/domains/{domain['id']}")).json()["records"]:
        assert record["value"].strip('"') in answer.text
    added = Added(place, place.team, await _full(place, domain["id"]))
    await added.publishes()
    assert "The result appears here" in (await sent(ada, one, f"{one}/verify")).text
    assert "Pending" in (await ada.get(one)).text
    await place.checks()
    assert "Verified" in (await ada.get(one)).text
    assert "Verified" in (await ada.get(LIST)).text


async def test_a_wrong_record_is_shown_with_what_to_do(place: Place) -> None:
    domain = await place.adds(NAME)
    await domain.publishes()
    place.dns.put("send.harbor.example", "TXT", '"v=spf1 <b>include</b>:other.example -all"')
    await domain.verifies()
    await place.checks()
    shown = text_of(await (await browser(place.team)).get(f"{LIST}/{domain.id}"))
    assert "v=spf1 <b>include</b>:other.example -all" in shown
    assert "The SPF record at send.harbor.example lacks" in shown


async def test_the_value_to_copy_keeps_the_record_that_is_there(place: Place) -> None:
    domain = await place.adds(NAME)
    await domain.publishes()
    place.dns.put("send.harbor.example", "TXT", '"v=spf1 include:_spf.hosting.example -all"')
    await domain.verifies()
    await place.checks()
    shown = await (await browser(place.team)).get(f"{LIST}/{domain.id}")
    copied = [
        value for value in re.findall(r"<code[^>]*>([^<]+)</code><button", shown.text) if "spf1" in value
    ]
    assert len(copied) == 1
    assert re.fullmatch(r"v=spf1 a:\S+ include:_spf.hosting.example -all", copied[0])
    assert "may have only one" in shown.text
    visitor = await browser(place.team)
    update = (await visitor.get(f"{LIST}/{domain.id}/nsupdate")).text
    assert 'update delete send.harbor.example. TXT "v=spf1 include:_spf.hosting.example -all"' in update
    assert f'update add send.harbor.example. 3600 IN TXT "{copied[0]}"' in update
    assert update.count("update add send.harbor.example. 3600 IN TXT") == 1
    zone = (await visitor.get(f"{LIST}/{domain.id}/zone")).text
    assert '; instead of "v=spf1 include:_spf.hosting.example -all"' in zone
    assert f'send.harbor.example. 3600 IN TXT "{copied[0]}"' in zone


def test_a_host_without_a_dot_is_named() -> None:
    assert dotless_host(ZoneLine("SPF", "send.harbor.example", "TXT", "v=spf1 a:vm ~all")) == "vm"
    assert dotless_host(ZoneLine("SPF", "send.harbor.example", "MX", "vm", priority=10)) == "vm"
    assert dotless_host(ZoneLine("SPF", "send.harbor.example", "TXT", "v=spf1 a:mx.vm.example ~all")) is None


async def test_a_name_that_is_none_is_refused_and_kept(place: Place) -> None:
    ada = await browser(place.team)
    answer = await ada.send(f"{LIST}/add", name='no"domain<', sending="on", receiving="on")
    assert answer.status_code == 422
    assert 'value="no&#34;domain&lt;"' in answer.text
    assert 'name="receiving" checked' in answer.text


async def test_settings_are_saved_and_contradictions_refused(place: Place) -> None:
    domain = await place.adds(NAME)
    ada, path = await browser(place.team), f"{LIST}/{domain.id}/settings"
    form = {"sending": "on", "receiving": "on", "open_tracking": "on", "tls": "enforced"}
    assert "The settings are saved." in (await sent(ada, path, path, **form, tracking_subdomain="t")).text
    shown = await domain.shown()
    assert shown["capabilities"] == {"sending": "enabled", "receiving": "enabled"}
    assert (shown["open_tracking"], shown["tracking_subdomain"]) == (True, "t")
    assert '<option value="enforced" selected>' in (await ada.get(path)).text
    answer = await ada.send(path, tls="enforced", tracking_subdomain="links")
    assert answer.status_code == 422
    assert 'value="links"' in answer.text
    assert "must be <code>enabled</code>" in answer.text


async def test_a_new_key_waits_for_its_record(place: Place) -> None:
    domain = await place.adds(NAME)
    ada, one = await browser(place.team), f"{LIST}/{domain.id}"
    answer = await sent(ada, one, f"{one}/rotate")
    assert "Publish its record beside the present one." in answer.text
    assert "pillarbox2._domainkey" in answer.text
    assert "waits for its record already" in (await sent(ada, one, f"{one}/rotate")).text
    acts = await place.world.pool.fetchval(
        "SELECT count(*) FROM audit_entries WHERE what = 'domain.key_rotated'"
    )
    assert acts == 1


async def test_files_for_a_name_server(place: Place) -> None:
    domain = await place.adds(NAME, capabilities={"receiving": "enabled"})
    ada, one = await browser(place.team), f"{LIST}/{domain.id}"
    zone = await ada.get(f"{one}/zone")
    assert zone.headers["content-disposition"].startswith('attachment; filename="harbor.example.zone"')
    read = dns.zone.from_text(zone.text, origin=f"{NAME}.", check_origin=False)
    assert {str(name) for name in read} >= {"send", "pillarbox._domainkey", "_dmarc", "@"}
    update = (await ada.get(f"{one}/nsupdate")).text
    assert "update add send.harbor.example. 3600 IN MX 10 mx.pillar.example.\n" in update
    assert update.endswith(
        "prereq nxrrset _dmarc.harbor.example. TXT\n"
        'update add _dmarc.harbor.example. 3600 IN TXT "v=DMARC1; p=none;"\nsend\n'
    )


async def test_a_domain_of_another_team_is_claimed(place: Place) -> None:
    quay = await place.world.team("Quay")
    await (await place.adds(NAME, team=quay)).verified()
    ada = await browser(place.team)
    refused = await ada.send(f"{LIST}/add", name=NAME, sending="on")
    assert refused.status_code == 403
    assert f'formaction="{LIST}/claim"' in refused.text
    answer = await ada.follow(await ada.post(f"{LIST}/claim", name=NAME))
    assert "The claim is open." in answer.text
    assert "pillarbox-domain-verification=" in answer.text
    assert "Waits for its record" in answer.text
    [domain] = (await place.team.get("/domains")).json()["data"]
    one = f"{LIST}/{domain['id']}"
    assert "The proof is looked for now." in (await sent(ada, one, f"{one}/claim/verify")).text
    assert (await ada.send(one, f"{one}/verify")).status_code == 422


async def test_a_domain_is_deleted_by_its_typed_name(place: Place) -> None:
    domain = await place.adds(NAME)
    ada, one = await browser(place.team), f"{LIST}/{domain.id}"
    wrong = await ada.send(one, f"{one}/delete", typed_name="quay.example")
    assert wrong.status_code == 422
    assert "type harbor.example to confirm" in wrong.text
    answer = await sent(ada, one, f"{one}/delete", typed_name=NAME)
    assert "The domain is deleted." in answer.text
    assert (await place.team.get("/domains")).json()["data"] == []


async def test_the_list_and_the_reputation_show_what_was_sent(place: Place) -> None:
    domain = await (await place.adds(NAME)).verified()
    for recipient in ("delivered@resend.dev", "complained@resend.dev"):
        await place.team.send(**{"from": f"a@{NAME}", "to": recipient, "subject": "x", "text": "x"})
    while await place.world.turn():
        pass
    ada = await browser(place.team)
    assert "50.00\N{NO-BREAK SPACE}%" in (await ada.get(LIST)).text
    assert re.search(r"Complaint rate 50.00\s%", text_of(await ada.get("/dashboard")))
    page = text_of(await ada.get(f"{LIST}/{domain.id}/reputation"))
    assert "above" in page
    assert "Delivered, bounced and complained per day" in page
    assert "Counts by provider begin on" in page


async def test_viewers_see_and_change_nothing(place: Place) -> None:
    domain = await place.adds(NAME)
    eve, one = await browser(place.team, TeamRole.VIEWER), f"{LIST}/{domain.id}"
    for path in (LIST, one, f"{one}/settings", f"{one}/reputation", f"{one}/zone"):
        assert (await eve.get(path)).status_code == 200
    assert 'action="/dashboard/domains' not in (await eve.get(one)).text
    await eve.get(one)
    for path in (f"{LIST}/add", f"{LIST}/claim", *(f"{one}/{what}" for what in ACTS)):
        assert (await eve.post(path, name="x.example", typed_name=NAME)).status_code == 403
    assert (await eve.get(f"{LIST}/add")).status_code == 403
    assert (await domain.shown())["status"] == "not_started"


ACTS = ("verify", "claim/verify", "rotate", "delete", "settings")


async def test_domains_of_other_teams_do_not_exist(place: Place) -> None:
    domain = await place.adds(NAME)
    bob, one = await browser(await place.world.team("Quay")), f"{LIST}/{domain.id}"
    for path in (one, f"{one}/settings", f"{one}/reputation", f"{one}/zone", f"{one}/nsupdate"):
        assert (await bob.get(path)).status_code == 404, path
    await bob.get(LIST)
    await bob.get(f"{LIST}/add")
    for what in ACTS:
        answer = await bob.post(f"{one}/{what}", typed_name=NAME, sending="on")
        assert answer.status_code == 404, what
    assert (await domain.shown())["status"] == "not_started"


async def _full(place: Place, domain_id: str) -> dict[str, Any]:
    return dict((await place.team.get(f"/domains/{domain_id}")).json())
