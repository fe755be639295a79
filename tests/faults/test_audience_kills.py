"""Processes that die in work on an audience: each act on many contacts, erasure and sign-up happens once."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from kit.http_client import http_client
from kit.process import KEY, connected, first_team, reconciled, settled, worker_processes
from kit.remote_servers import remote_servers
from kit.world import mail

pytestmark = pytest.mark.sweep

PEOPLE: Final = 250
"""Three batches of an act on many contacts."""

KIM: Final = "kim@quay.example"


async def answered(client: httpx.AsyncClient, path: str, *statuses: str) -> dict[str, Any]:
    """Return the thing at a path, once its status is one of these."""
    async with asyncio.timeout(60):
        while True:
            found: dict[str, Any] = (await client.get(path)).json()
            if found["status"] in statuses:
                return found
            await asyncio.sleep(0.05)


async def made(client: httpx.AsyncClient, path: str, body: dict[str, Any] | None = None) -> str:
    answer = await client.post(path, json=body)
    assert answer.status_code in (200, 201, 202), answer.text
    return str(answer.json()["id"])


async def test_a_worker_that_dies_in_an_act_on_many_contacts(database_url: str, tmp_path: Path) -> None:
    """DUR-03: before a batch is committed, and behind it: each contact is changed and counted once."""
    await first_team(database_url)
    with worker_processes(database_url, tmp_path) as workers:
        workers.start("bulk_act.batch_written=kill@2")
        async with http_client("http://{}:{}".format(*workers.at), KEY) as client:
            hook = {"endpoint": "https://hooks.quay.example/in", "events": ["contact.updated"]}
            await made(client, "/webhooks", hook)
            for number in range(PEOPLE):
                await made(client, "/contacts", {"email": f"reader.{number}@quay.example"})
            act_id = await made(client, "/contacts/bulk-acts", {"action": "unsubscribe", "all": True})
            for fault in ("bulk_act.batch_committed=kill@1", ""):
                assert await asyncio.to_thread(workers.died) == -signal.SIGKILL
                workers.start(fault)
            act = await answered(client, f"/contacts/bulk-acts/{act_id}", "completed", "failed")
            assert (act["status"], act["done"], act["changed"]) == ("completed", PEOPLE, PEOPLE)
        async with connected(database_url) as conn:
            assert await conn.fetchval("SELECT count(*) FROM contacts WHERE NOT unsubscribed") == 0
            told = "SELECT count(*) FROM webhook_events WHERE kind = 'contact.updated'"
            assert await conn.fetchval(told) == PEOPLE
    await reconciled(database_url)


@pytest.mark.parametrize("point", ["written", "committed"])
async def test_a_worker_that_dies_in_an_erasure(database_url: str, tmp_path: Path, point: str) -> None:
    """DUR-03: at steps of several kinds of data: nothing is left, nothing is counted twice, nobody else is
    touched."""
    await first_team(database_url)
    with (
        remote_servers(tmp_path / "far", {"127.0.0.1": {}}) as far,
        worker_processes(database_url, tmp_path, route=f"relay:smtp://127.0.0.1:{far.port}") as workers,
    ):
        workers.start(f"personal_data.step_{point}=kill@1")
        async with http_client("http://{}:{}".format(*workers.at), KEY) as client:
            for address in (KIM, "ben@quay.example"):
                await made(client, "/contacts", {"email": address})
                await made(client, "/emails", mail(to=address, text=f"Dear {address}"))
            await settled(database_url, 30)
            erasure_id = await made(client, f"/personal-data/{KIM}/erase")
            for passage in (2, 3, 4, 5):
                assert await asyncio.to_thread(workers.died) == -signal.SIGKILL
                workers.start(f"personal_data.step_{point}=kill@{passage}")
            assert await asyncio.to_thread(workers.died) == -signal.SIGKILL
            workers.start()
            await answered(client, f"/personal-data/erasures/{erasure_id}", "completed")
            listed = (await client.get("/emails")).json()["data"]
            assert sorted(one["to"][0] for one in listed) == ["ben@quay.example", "erased@erased.invalid"]
            assert [one["email"] for one in (await client.get("/contacts")).json()["data"]] == [
                "ben@quay.example"
            ]
        async with connected(database_url) as conn:
            named = "SELECT count(*) FROM emails e WHERE e::text LIKE '%' || $1 || '%'"
            assert await conn.fetchval(named, KIM) == 0
            assert await conn.fetchval("SELECT count(*) FROM jobs WHERE kind = 'personal_data.erase'") == 0
    await reconciled(database_url)


async def test_a_worker_that_dies_in_a_sign_up(database_url: str, tmp_path: Path) -> None:
    """DUR-03: neither a sign-up without its mail, nor a link that is used up and added nobody."""
    await first_team(database_url)
    with worker_processes(database_url, tmp_path) as workers:
        workers.start("forms.mail_written=kill")
        async with http_client("http://{}:{}".format(*workers.at), KEY) as client:
            form_id = await made(client, "/forms", {"name": "News", "from": "Harbor <hello@harbor.example>"})
            page = httpx.URL((await client.get(f"/forms/{form_id}")).json()["url"]).path
            with pytest.raises(httpx.TransportError):
                await client.post(page, data={"email": KIM})
            assert await asyncio.to_thread(workers.died) == -signal.SIGKILL
            workers.start("forms.confirmed=kill")
            assert (await client.get("/emails")).json()["data"] == []
            assert (await client.post(page, data={"email": KIM})).status_code == 200
            [listed] = (await client.get("/emails")).json()["data"]
            text = (await client.get(f"/emails/{listed['id']}")).json()["text"]
            [link] = [httpx.URL(word).path for word in text.split() if "/confirm" in word]
            with pytest.raises(httpx.TransportError):
                await client.post(link)
            assert await asyncio.to_thread(workers.died) == -signal.SIGKILL
            workers.start()
            assert (await client.get("/contacts")).json()["data"] == []
            assert (await client.post(link)).status_code == 200
            assert [one["email"] for one in (await client.get("/contacts")).json()["data"]] == [KIM]
            [sign_up] = (await client.get(f"/forms/{form_id}/sign-ups")).json()["data"]
            assert sign_up["confirmed_at"] is not None
    await reconciled(database_url)
