"""`pillarbox mcp`: the official client by standard input and output."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from mcp import StdioServerParameters
from mcp.client.client import Client

from kit.mcp_client import AUTO, HANDSHAKE
from kit.world import World
from pillarbox.cli.stdio_bridge import StdioBridge


@pytest.mark.parametrize("mode", [AUTO, HANDSHAKE])
async def test_a_local_program_uses_the_tools_of_the_running_server(pillarbox: World, mode: str) -> None:
    team = await pillarbox.team()
    await team.post("/suppressions", {"email": "ben@quay.example"})
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "pillarbox", "mcp", "--url", pillarbox.url],
        env={**os.environ, "PILLARBOX_API_KEY": team.token},
    )
    async with Client(server, mode=mode) as client:  # type: ignore[arg-type]
        found = await client.call_tool("list_suppressions", {})
        assert found.structured_content is not None
        assert [one["email"] for one in found.structured_content["data"]] == ["ben@quay.example"]


def test_an_interrupt_ends_it_while_it_waits_for_a_line() -> None:
    command = [sys.executable, "-m", "pillarbox", "mcp", "--url", "http://127.0.0.1:9"]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PILLARBOX_API_KEY": "re_unknown"},
    ) as bridge:
        assert bridge.stdin is not None
        assert bridge.stdout is not None
        bridge.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        bridge.stdin.flush()
        assert b"cannot be reached" in bridge.stdout.readline()
        bridge.send_signal(signal.SIGINT)
        assert bridge.wait(10) == -signal.SIGINT


async def test_a_wrong_key_is_told(pillarbox: World) -> None:
    bridge = StdioBridge(pillarbox.url, "re_wrong", lambda line: None)
    answer = await bridge.answer(b'{"jsonrpc":"2.0","id":7,"method":"tools/list"}')
    assert answer is not None
    assert b'"id":7' in answer
    assert b"API key is invalid" in answer
    assert await bridge.answer(b'{"jsonrpc":"2.0","method":"notifications/initialized"}') is None
    unreadable = await bridge.answer(b"{")
    assert unreadable is not None
    assert b'"id":null' in unreadable
