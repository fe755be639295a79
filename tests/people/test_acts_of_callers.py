"""What callers of the API do is in the audit log, in the transaction of the act (SEC-07)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kit.world import Team, world
from pillarbox.kernel.http.routing import Access
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.slices import Container
from pillarbox.kernel.wire.paging import Page
from pillarbox.people.audit import queries as audit_queries
from pillarbox.people.audit.queries import AuditEntry

Place = tuple[str, Path]

RECORDED = {
    ("POST", "/api-keys"): "key.created",
    ("PATCH", "/api-keys/{api_key_id}"): "key.renamed",
    ("DELETE", "/api-keys/{api_key_id}"): "key.deleted",
    ("POST", "/domains"): "domain.created",
    ("PATCH", "/domains/{domain_id}"): "domain.changed",
    ("DELETE", "/domains/{domain_id}"): "domain.deleted",
    ("POST", "/domains/claim"): "domain.claimed",
    ("POST", "/webhooks"): "webhook.created",
    ("PATCH", "/webhooks/{webhook_id}"): "webhook.changed",
    ("DELETE", "/webhooks/{webhook_id}"): "webhook.deleted",
    ("POST", "/webhooks/{webhook_id}/signing-secret/rotate"): "webhook.secret_rotated",
    ("DELETE", "/suppressions/{suppression}"): "suppressions.removed",
    ("POST", "/suppressions/batch/remove"): "suppressions.removed",
}
"""Routes that change who may do what, or what protects others, by the act that is recorded."""

WITHOUT_POWER = {
    ("POST", "/domains/{domain_id}/verify"): "looks into DNS",
    ("POST", "/domains/{domain_id}/claim/verify"): "looks into DNS",
    ("POST", "/webhooks/{webhook_id}/events/{event}/replay"): "sends what was sent",
    ("POST", "/suppressions"): "is on the list itself",
    ("POST", "/suppressions/batch/add"): "is on the list itself",
}


@pytest.fixture(scope="module")
def place(databases: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    url = databases.fresh()
    yield url, tmp_path_factory.mktemp("acts")
    databases.drop(url)


async def entries(team: Team) -> list[AuditEntry]:
    """The entries of the team, the oldest first."""
    found = await audit_queries.page(TeamDb(team.world.pool, team.id), Page(100))
    return found[::-1]


async def acts(team: Team) -> list[tuple[str, str | None]]:
    return [(entry.what, entry.target) for entry in await entries(team)]


def webhook(path: str = "a") -> dict[str, Any]:
    return {"endpoint": f"https://quay.example/{path}", "events": ["email.sent"]}


async def test_every_route_of_power_is_recorded(place: Place) -> None:
    """A route that comes to these resources is in one of the lists."""
    async with world(*place, started=False) as here:
        kit: Container = here.app.kit
        changing = {
            (route.method, route.path)
            for route in kit.routes
            if route.needs is not Access.PUBLIC and route.method != "GET"
            if route.path.split("/")[1] in ("api-keys", "domains", "webhooks", "suppressions")
        }
    assert changing == RECORDED.keys() | WITHOUT_POWER.keys()


async def test_acts_of_a_key(place: Place) -> None:
    async with world(*place, started=False) as here:
        team = await here.team()
        made = (await team.post("/api-keys", {"name": "printer"}, user_agent="Quill/2")).json()
        path = f"/api-keys/{made['id']}"
        await team.call("PATCH", path, {"name": "press"})
        assert (await team.call("DELETE", path)).status_code == 200
        assert await acts(team) == [
            ("key.created", "printer"),
            ("key.renamed", "press"),
            ("key.deleted", "press"),
        ]
        created = (await entries(team))[0]
        assert (created.actor, created.address, created.user_agent) == ("First key", "127.0.0.1", "Quill/2")
        assert json.loads(created.details or "") == {"id": made["id"], "permission": "full_access"}
        assert made["token"] not in str(await entries(team))


async def test_a_key_that_deletes_itself_is_named(place: Place) -> None:
    async with world(*place, started=False) as here:
        team = await here.team()
        made = (await team.post("/api-keys", {"name": "itself"})).json()
        await team.using(made["token"]).call("DELETE", f"/api-keys/{made['id']}")
        deleted = (await entries(team))[-1]
        assert (deleted.what, deleted.actor, deleted.key_id) == (
            "key.deleted",
            "itself",
            UUID(made["id"]),
        )


async def test_acts_on_domains(place: Place) -> None:
    async with world(*place, started=False) as here:
        team = await here.team()
        domain = (await team.post("/domains", {"name": "pier.example"})).json()["id"]
        await team.call("PATCH", f"/domains/{domain}", {"open_tracking": True})
        await team.call("PATCH", f"/domains/{domain}", {"open_tracking": True})
        await team.call("DELETE", f"/domains/{domain}")
        assert await acts(team) == [
            ("domain.created", "pier.example"),
            ("domain.changed", "pier.example"),
            ("domain.deleted", "pier.example"),
        ]


async def test_a_claim_is_recorded_once(place: Place) -> None:
    async with world(*place, started=False) as here:
        owner, claiming = await here.team(), await here.team()
        await owner.domain("jetty.example")
        for _ in range(2):
            assert (await claiming.post("/domains/claim", {"name": "jetty.example"})).status_code < 300
        assert await acts(owner) == [("domain.trusted", "jetty.example")]
        assert await acts(claiming) == [("domain.claimed", "jetty.example")]


async def test_acts_on_webhooks(place: Place) -> None:
    """Their secrets and endpoints are not in the log."""
    async with world(*place, started=False) as here:
        team = await here.team()
        made = (await team.post("/webhooks", webhook("token-in-a-path"))).json()
        path = f"/webhooks/{made['id']}"
        await team.call("PATCH", path, {"status": "disabled"})
        await team.post(f"{path}/signing-secret/rotate")
        await team.call("DELETE", path)
        whats = ["webhook.created", "webhook.changed", "webhook.secret_rotated", "webhook.deleted"]
        assert await acts(team) == [(what, made["id"]) for what in whats]
        log = str(await entries(team))
        assert made["signing_secret"] not in log
        assert "token-in-a-path" not in log


async def test_suppressions_that_are_removed(place: Place) -> None:
    async with world(*place, started=False) as here:
        team = await here.team()
        addresses = [f"{name}@quay.example" for name in ("ada", "bo", "cy")]
        await team.post("/suppressions/batch/add", {"emails": addresses})
        await team.call("DELETE", f"/suppressions/{addresses[0]}")
        await team.post("/suppressions/batch/remove", {"emails": addresses})
        await team.post("/suppressions/batch/remove", {"emails": addresses})
        found = await entries(team)
        assert [(entry.target, entry.details) for entry in found] == [
            (addresses[0], '{"count": 1}'),
            (addresses[1], '{"count": 2}'),
        ]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api-keys", {"name": 7}),
        ("POST", "/api-keys", {"name": "x", "permission": "sending_access", "domain_id": str(UUID(int=7))}),
        ("PATCH", f"/api-keys/{UUID(int=7)}", {"name": "x"}),
        ("DELETE", f"/api-keys/{UUID(int=7)}", None),
        ("POST", "/domains", {"name": "no domain"}),
        ("PATCH", f"/domains/{UUID(int=7)}", {}),
        ("DELETE", f"/domains/{UUID(int=7)}", None),
        ("POST", "/domains/claim", {"name": "nobodys.example"}),
        ("POST", "/webhooks", {"endpoint": "no url", "events": ["email.sent"]}),
        ("PATCH", f"/webhooks/{UUID(int=7)}", {"status": "disabled"}),
        ("DELETE", f"/webhooks/{UUID(int=7)}", None),
        ("POST", f"/webhooks/{UUID(int=7)}/signing-secret/rotate", {}),
        ("DELETE", "/suppressions/nobody@quay.example", None),
    ],
)
async def test_what_is_refused_is_no_act(place: Place, method: str, path: str, body: Any) -> None:
    async with world(*place, started=False) as here:
        team = await here.team()
        assert (await team.call(method, path, body)).status_code >= 400
        assert await acts(team) == []


async def test_an_answer_that_is_given_again_is_no_second_act(place: Place) -> None:
    async with world(*place, started=False) as here:
        team = await here.team()
        answers = [await team.post("/api-keys", {"name": "once"}, idempotency_key="abc") for _ in range(2)]
        keys = len((await team.get("/api-keys")).json()["data"])
        assert len(await acts(team)) == keys - 1, [answer.text for answer in answers]
