"""The official Python client lists and calls the tools, in both versions of the protocol."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from inboxes.waiting.test_waiting import until, waiting
from kit.builders import body_of, made_for
from kit.inbox_rows import Inbox
from kit.mcp_client import AUTO, HANDSHAKE, mcp_client, used
from kit.seed_data import POSTED, seed_team
from kit.world import Team, World
from pillarbox.inboxes.waiting import waiters
from pillarbox.kernel.http.routing import RouteTable
from pillarbox.mcp.tool_schemas import BoundTool, bound_tools

VERSIONS = {AUTO: "2026-07-28", HANDSHAKE: "2025-11-25"}
BESIDE = {"create_broadcast", "send_broadcast", "verify_domain"}
"""Need what a seeded team has not; tests of their own are below or in the tests of the route."""


@pytest.mark.parametrize("mode", VERSIONS)
async def test_a_client_finds_out_and_acts(inbox: Inbox, mode: str) -> None:
    thread = await inbox.thread("Refund for order 88")
    await thread.received(
        b"From: iris@customer.example\r\nSubject: Refund for order 88\r\n\r\nWhere is it?\r\n"
    )
    async with mcp_client(inbox.team, mode) as client:
        assert client.protocol_version == VERSIONS[mode]
        assert client.server_info is not None
        assert client.server_info.name == "pillarbox"
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert len(tools) > 40
        assert tools["list_threads"].annotations is not None
        assert tools["list_threads"].annotations.read_only_hint is True
        listed = await client.call_tool("list_inboxes", {})
        mine = next(one for one in content(listed)["data"] if one["id"] == str(inbox.id))
        threads = content(await client.call_tool("list_threads", {"inbox": mine["id"]}))
        assert [one["subject"] for one in threads["data"]] == ["Refund for order 88"]
        ids = {"inbox": mine["id"], "thread_id": threads["data"][0]["id"]}
        [*_, email] = content(await client.call_tool("list_messages", ids))["data"]
        assert not email.keys() & {"html", "text", "extracted_text"}
        read = content(await client.call_tool("read_message", {**ids, "email_id": email["id"]}))
        assert "Where is it?" in read["text"]
        assert read["text"].count(read["fence"]) == 3
        wrong = await client.call_tool("list_threads", {"inbox": "nobody@harbor.example"})
        assert wrong.is_error


async def test_a_client_waits_for_news_without_saying_how_long(inbox: Inbox) -> None:
    thread = await inbox.thread("Refund for order 88")
    here = {"inbox": str(inbox.id)}
    async with mcp_client(inbox.team, AUTO) as client:
        first = content(await client.call_tool("wait_for_mail", here))
        waits = asyncio.create_task(
            client.call_tool("wait_for_mail", {**here, "after_change": first["change"]})
        )
        await until(lambda: waiting(inbox.team.world) == 1)
        await inbox.team.call("PATCH", f"/inboxes/{inbox.id}/threads/{thread.id}", {"folder": "archive"})
        assert content(await waits)["data"] == []


async def test_a_call_that_waits_ends_with_its_client_and_with_the_server(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiters, "STEP_SECONDS", 0.05)
    world = inbox.team.world
    leaves = asyncio.create_task(used(inbox.team, "wait_for_mail", inbox=str(inbox.id)))
    await until(lambda: waiting(world) == 1)
    leaves.cancel()
    await asyncio.gather(leaves, return_exceptions=True)
    await until(lambda: waiting(world) == 0)
    stays = asyncio.create_task(used(inbox.team, "wait_for_mail", inbox=str(inbox.id)))
    await until(lambda: waiting(world) == 1)
    world.app.need(waiters.Waiters).close()
    assert (await asyncio.wait_for(stays, 10))["isError"] is False


def content(result: Any) -> dict[str, Any]:
    assert not result.is_error, result.content
    return dict(result.structured_content)


async def test_every_tool_answers_as_its_schema_says(pillarbox: World) -> None:
    """The client compares what it gets with the schema of the tool, and raises where they differ."""
    team = await seed_team(pillarbox)
    tools = bound_tools(RouteTable(pillarbox.app.kit.routes))
    async with mcp_client(team, AUTO) as client:
        await client.list_tools()
        for name, bound in tools.items():
            if name not in BESIDE:
                result = await client.call_tool(name, await arguments_of(team, bound))
                assert not result.is_error, f"{name}: {result.content}"


async def arguments_of(team: Team, bound: BoundTool) -> dict[str, Any]:
    made = await made_for(team, bound.route)
    body = body_of(bound.route.method, bound.route.path, made) or POSTED.get(bound.route.path, {})
    ids = {name: made[name] for name in bound.route.parameters}
    return {**ids, **{name: value for name, value in body.items() if name in bound.tool.fields}}
