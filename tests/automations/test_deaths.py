"""Processes that die while they carry out steps: each step is done once, and each mail goes out once."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest

from kit.automation_rows import chain, step
from kit.http_client import http_client
from kit.process import KEY, connected, first_team, reconciled, worker_processes

pytestmark = pytest.mark.sweep

COUNT = 12
POINTS = [
    "events.told=kill@3",
    "automations.claimed=kill@1",
    pytest.param("automations.claimed=kill@2", marks=pytest.mark.slow),
    "automations.written=kill@1",
    pytest.param("automations.written=kill@2", marks=pytest.mark.slow),
    "automations.committed=kill@1",
    pytest.param("accept.within=kill@1", marks=pytest.mark.slow),
    pytest.param("accept.before_commit=kill@1", marks=pytest.mark.slow),
    "accept.after_commit=kill@1",
]
LEFT = """
    SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM automation_work)
           + (SELECT count(*) FROM jobs WHERE kind LIKE 'events.distribute%')
"""


def graph(template: str, segment: str) -> dict[str, Any]:
    return chain(
        step("start", "trigger", event_name="user.signed_up"),
        step("note", "contact_update", first_name="Ada"),
        step("join", "add_to_segment", segment_id=segment),
        step("hello", "send_email", template={"id": template}, subject="Hello"),
        step("pause", "delay", duration="1 second"),
        step("known", "condition", type="rule", field="contact.first_name", operator="eq", value="Ada"),
    )


@pytest.mark.parametrize("fault", POINTS)
async def test_a_process_dies(database_url: str, tmp_path: Path, fault: str) -> None:
    """A point is passed as steps are carried out; its process gets SIGKILL there, and another one goes on."""
    await first_team(database_url)
    with worker_processes(database_url, tmp_path) as workers:
        workers.start(fault)
        async with http_client("http://{}:{}".format(*workers.at), KEY) as client:
            automation = await an_automation(client)
            body = [
                {"event": "user.signed_up", "email": f"c{number}@quay.example"} for number in range(COUNT)
            ]
            try:
                await client.post("/events/send", json=body)
            except httpx.TransportError:
                pass
            assert await asyncio.to_thread(workers.died) == -signal.SIGKILL
            async with connected(database_url) as conn:
                assert (
                    await conn.fetchval(
                        "SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM automation_runs)"
                    )
                    == COUNT
                )
            await reconciled(database_url)
            workers.start()
            await done(database_url)
            answer = await client.get(f"/automations/{automation}/runs?limit=100&status=completed")
            assert len(answer.json()["data"]) == COUNT
    async with connected(database_url) as conn:
        rows = await conn.fetch("SELECT to_list::text AS address, count(*) FROM emails GROUP BY 1")
        assert sorted(row["count"] for row in rows) == [1] * COUNT
        members = await conn.fetchval("SELECT count(*) FROM segment_members")
        steps = await conn.fetchval("SELECT count(*) FROM automation_steps WHERE status = 'completed'")
        assert (members, steps) == (COUNT, COUNT * 6)
    await reconciled(database_url)


async def an_automation(client: httpx.AsyncClient) -> str:
    """Created and enabled, with all that it names."""
    content = {"name": "Hello", "from": "Harbor <hi@harbor.example>", "html": "<p>Hello</p>"}
    template = (await client.post("/templates", json=content)).json()["id"]
    assert (await client.post(f"/templates/{template}/publish")).status_code == 200
    segment = (await client.post("/segments", json={"name": "Crew"})).json()["id"]
    connections = graph(template, segment)
    answer = await client.post("/automations", json={"name": "Welcome", "status": "enabled", **connections})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def done(url: str) -> None:
    """Wait until no event waits and no step is left."""
    async with asyncio.timeout(40), connected(url) as conn:
        while await conn.fetchval(LEFT):
            await asyncio.sleep(0.05)
