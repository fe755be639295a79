"""What one team adds without proof changes nothing for the mail of the team that has proved a name.

Every look-up of a name that knows no team is asked about a team's own names and addresses, once beside the
unproven claims of another team and once without them.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kit.clock import ManualClock
from kit.inbound_client import receiving_domain
from kit.world import Team, World, world
from pillarbox.directory import domains as directory
from pillarbox.kernel.ids import Ids
from pillarbox.mail.reports.verp import VerpSigner
from pillarbox.receiving.addresses import AddressLookup
from pillarbox.teams import slugs

OWN, ABOVE = "inbox.harbor.example", "harbor.example"
LOCALS = ("ann", "fbl", "FBL", "postmaster", "abuse")
BOTH = {"sending": "enabled", "receiving": "enabled"}

Ask = Callable[[World, Team, str], Awaitable[Any]]

LOOKUPS: dict[str, Ask] = {
    "owner": lambda here, own, name: directory.owner(here.pool, name),
    "owned_elsewhere": lambda here, own, name: directory.owned_elsewhere(own.db, name),
    "receivers_of": lambda here, own, name: directory.receivers_of(here.pool, [name]),
    "tracker": lambda here, own, name: directory.tracker(here.pool, name, "links"),
}
"""The questions of `directory.domains`, as the team that has proved the name asks them."""

CHANGES = {"add", "remove", "take_ownership", "release_ownership", "hold_name"}
"""Its functions that are no questions."""


def test_every_question_of_the_directory_is_in_the_table() -> None:
    functions = {
        name
        for name, value in vars(directory).items()
        if inspect.iscoroutinefunction(value) and value.__module__ == directory.__name__
    }
    assert functions == LOOKUPS.keys() | CHANGES


@pytest.mark.parametrize("require_dns", ["true", "false"])
async def test_unproven_claims_change_nothing_for_the_team_that_proved(
    database_url: str, tmp_path: Path, require_dns: str
) -> None:
    clock = ManualClock()
    settings = {"inbound_domain": "in.pillar.example", "inbound_require_dns": require_dns}
    async with world(database_url, tmp_path, clock=clock, started=False, **settings) as here:
        own, other = await here.team("Harbor"), await here.team("Quay")
        claimed = await claim_everything(other, await slug_of(own))
        await receiving_domain(own, OWN)
        await here.pool.execute("UPDATE domains SET tracking_subdomain = 'links' WHERE name = $1", OWN)
        await here.pool.execute("UPDATE domains SET tracking_ok = true")
        beside = await answers(here, own)
        for name in claimed:
            await other.call("DELETE", f"/domains/{name}")
        assert await here.pool.fetchval("SELECT count(*) FROM directory_domains") == 1
        clock.advance(2)
        alone = await answers(here, own)
        assert {asked: found for asked, found in beside.items() if found != alone[asked]} == {}
        assert alone["at ann@inbox.harbor.example"].team_id == own.id, "the questions have answers at all"
        assert str(alone[f"tracker {OWN}"]) == str(own.id)


async def test_a_return_path_below_a_proved_domain_takes_reports_though_another_team_receives_there(
    pillarbox: World,
) -> None:
    """Both have proved what they hold: signed addresses are reports, `fbl` is the receiver's."""
    receiver, sender = await pillarbox.team("Harbor"), await pillarbox.team("Quay")
    await receiving_domain(receiver, OWN)
    made = await sender.post("/domains", {"name": ABOVE, "custom_return_path": "inbox"})
    assert made.status_code == 201
    await sender.domain(ABOVE)
    find = pillarbox.app.need(AddressLookup).find
    token = pillarbox.app.need(VerpSigner).token(await number(sender), pillarbox.app.need(Ids).new(), 0)
    assert (await find(token, OWN)).token == token  # type: ignore[union-attr]
    assert (await find("fbl", OWN)).team_id == receiver.id  # type: ignore[union-attr]


async def claim_everything(team: Team, slug: str) -> list[str]:
    """Add the name, the one above and those below it, with every option that gives a name a meaning, and as
    if DNS had shown all but who owns them; the ids of what was not refused."""
    wanted: list[dict[str, Any]] = [
        {"name": OWN, "capabilities": BOTH},
        {"name": ABOVE, "capabilities": BOTH, "custom_return_path": "inbox", "tracking_subdomain": "links"},
        {"name": f"send.{OWN}", "capabilities": BOTH},
        {"name": f"send.send.{OWN}", "capabilities": BOTH},
        {"name": f"links.{OWN}", "capabilities": BOTH},
        {"name": "pillar.example", "capabilities": BOTH, "custom_return_path": "in"},
        {"name": "in.pillar.example", "capabilities": BOTH, "custom_return_path": slug},
        {"name": f"{slug}.in.pillar.example", "capabilities": BOTH},
        {"name": "mx.pillar.example", "capabilities": BOTH},
    ]
    made = [await team.post("/domains", body) for body in wanted]
    refused = {body["name"] for body, answer in zip(wanted, made, strict=True) if answer.status_code != 201}
    assert refused == {"in.pillar.example", f"{slug}.in.pillar.example", "mx.pillar.example"}
    await team.world.pool.execute("UPDATE domains SET receiving_ok = true, sending_ok = true")
    return [answer.json()["id"] for answer in made if answer.status_code == 201]


async def answers(here: World, own: Team) -> dict[str, Any]:
    """What is answered about the names and the addresses that matter to the team."""
    slug = await slug_of(own)
    email = UUID(int=int(str(own.id).replace("-", ""), 16))
    token = here.app.need(VerpSigner).token(await number(own), email, 0)
    names = (OWN, f"send.{OWN}", f"{slug}.in.pillar.example", "in.pillar.example", "mx.pillar.example")
    found: dict[str, Any] = {}
    for name in names:
        if name.endswith(OWN):
            for question, ask in LOOKUPS.items():
                found[f"{question} {name}"] = await ask(here, own, name)
        for local in (*LOCALS, token):
            found[f"at {local}@{name}"] = await here.app.need(AddressLookup).find(local, name)
    return found


async def slug_of(team: Team) -> str:
    return slugs.slug(await number(team))


async def number(team: Team) -> int:
    found: int = await team.world.pool.fetchval("SELECT number FROM teams WHERE id = $1", team.id)
    return found
