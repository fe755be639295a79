"""What the MCP server answers to right, wrong and hostile messages (mcp.md 2 and 3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kit.inbox_mail import inbox_mail
from kit.inbox_rows import Inbox
from kit.manual_world import manual_world
from kit.mcp_client import message, posted, stateless, used
from kit.programs import program
from kit.world import Team, World
from pillarbox.mcp import calls, server

PUBLIC = "https://mail.harbor.example"
METADATA = f'resource_metadata="{PUBLIC}/.well-known/oauth-protected-resource/mcp"'
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "quill", "version": "1"},
}

PARSE, REQUEST, METHOD, PARAMS, MISMATCH, VERSION = -32700, -32600, -32601, -32602, -32020, -32022


def code(answer: Any) -> tuple[int, int]:
    return answer.status_code, answer.json()["error"]["code"]


async def test_a_client_without_a_credential_is_told_where_to_get_one(
    database_url: str, tmp_path: Path
) -> None:
    """RFC 9728 5.1; MCP asks for 401 also where a key is wrong."""
    async with manual_world(database_url, tmp_path, public_url=PUBLIC) as pillarbox:
        for token in (None, "re_unknown", "a.b.c"):
            answer = await pillarbox.client(token).post("/mcp", json=message("tools/list"))
            assert answer.status_code == 401
            assert METADATA in answer.headers["www-authenticate"]
            assert answer.json()["id"] is None
        found = (await pillarbox.client(None).get("/.well-known/oauth-protected-resource/mcp")).json()
        assert (found["resource"], found["authorization_servers"]) == (f"{PUBLIC}/mcp", [PUBLIC])


async def test_a_key_that_only_sends_has_the_tools_that_send(pillarbox: World) -> None:
    team = await pillarbox.team()
    await team.domain()
    sender = team.using(await team.key(permission="sending_access"))
    listed = (await posted(sender, message("tools/list"))).json()["result"]["tools"]
    assert {tool["name"] for tool in listed} == {"send_email", "send_broadcast", "get_usage"}
    refused = await used(sender, "list_emails")
    assert refused["isError"] is True
    assert "restricted to only send" in refused["content"][0]["text"]
    mail = {
        "from": "ada@harbor.example",
        "to": "ben@quay.example",
        "subject": "Tides",
        "text": "High at noon.",
    }
    sent = await used(sender, "send_email", **mail)
    assert set(sent["structuredContent"]) == {"id"}


async def test_a_key_for_one_inbox_has_the_tools_of_its_rights(inbox: Inbox) -> None:
    key = await inbox.team.key(inbox_id=str(inbox.id), rights=["read", "label"])
    agent = inbox.team.using(key)
    listed = (await posted(agent, message("tools/list"))).json()["result"]["tools"]
    names = {tool["name"] for tool in listed}
    assert {"list_threads", "read_message", "label_thread"} <= names
    assert not names & {"send_email", "reply_to_message", "create_draft", "list_emails", "list_contacts"}
    assert not (await used(agent, "list_threads", inbox=str(inbox.id)))["isError"]
    for tool, arguments in (
        ("send_email", {"to": "ben@quay.example"}),
        ("list_emails", {}),
        ("list_threads", {"inbox": "other@harbor.example"}),
    ):
        assert (await used(agent, tool, **arguments))["isError"] is True


async def test_a_program_that_may_only_send_is_asked_to_get_more(database_url: str, tmp_path: Path) -> None:
    async with manual_world(database_url, tmp_path, public_url=PUBLIC) as pillarbox:
        acting = (await program(await pillarbox.team(), ("emails:send",))).acting
        answer = await posted(acting, message("tools/call", {"name": "list_emails"}))
        assert answer.status_code == 403
        assert 'error="insufficient_scope", scope="full_access"' in answer.headers["www-authenticate"]


async def test_a_repeated_call_with_a_key_sends_once(pillarbox: World) -> None:
    team = await pillarbox.team()
    await team.domain()
    mail = {
        "from": "ada@harbor.example",
        "to": "ben@quay.example",
        "subject": "Tides",
        "text": "High at noon.",
    }
    first = await used(team, "send_email", **mail, idempotency_key="tides-1")
    again = await used(team, "send_email", **mail, idempotency_key="tides-1")
    assert first["structuredContent"] == again["structuredContent"]
    assert len((await used(team, "list_emails"))["structuredContent"]["data"]) == 1


async def test_calls_count_against_the_rate_of_the_team(database_url: str, tmp_path: Path) -> None:
    async with manual_world(database_url, tmp_path, rate_limit="2") as pillarbox:
        team = await pillarbox.team()
        assert not (await used(team, "list_inboxes"))["isError"]
        assert not (await used(team, "list_inboxes"))["isError"]
        slowed = await used(team, "list_inboxes")
        assert slowed["isError"] is True
        assert "status 429" in slowed["content"][0]["text"]
        assert "Try again after" in slowed["content"][0]["text"]
        assert (await posted(team, message("tools/list"))).status_code == 429
        told = await posted(team, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert told.status_code == 429


async def test_a_call_is_a_row_of_the_log_of_requests(pillarbox: World) -> None:
    team = await pillarbox.team()
    await used(team, "add_suppression", email="ben@quay.example")
    [row] = (await team.get("/logs?limit=1")).json()["data"]
    assert (row["endpoint"], row["method"], row["response_status"]) == ("/suppressions", "POST", 201)


async def test_a_page_of_another_site_is_refused(pillarbox: World) -> None:
    team = await pillarbox.team()
    own = pillarbox.app.kit.settings.public_url
    assert (await posted(team, message("tools/list"), origin="https://evil.example")).status_code == 403
    assert (await posted(team, message("tools/list"), origin="null")).status_code == 403
    assert (await posted(team, message("tools/list"), origin=own)).status_code == 200


async def test_where_it_is_off_there_is_nothing(database_url: str, tmp_path: Path) -> None:
    async with manual_world(database_url, tmp_path, mcp="off") as pillarbox:
        team = await pillarbox.team()
        assert (await posted(team, message("tools/list"))).status_code == 404
        assert (await team.get("/.well-known/oauth-protected-resource/mcp")).status_code == 404


async def test_the_handshake(pillarbox: World) -> None:
    team = await pillarbox.team()
    for wanted, given in (
        ("2025-06-18", "2025-06-18"),
        ("1999-01-01", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
    ):
        begun = (await posted(team, message("initialize", {**INITIALIZE, "protocolVersion": wanted}))).json()
        assert begun["result"]["protocolVersion"] == given
    told = await posted(team, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (told.status_code, told.content) == (202, b"")
    assert (await posted(team, message("ping"))).json()["result"] == {}
    for method in ("GET", "DELETE"):
        assert (await team.http.request(method, "/mcp")).status_code == 405


async def test_each_request_of_the_stateless_version_says_what_it_is(pillarbox: World) -> None:
    team = await pillarbox.team()
    found = (await stateless(team, "server/discover")).json()["result"]
    assert found["supportedVersions"] == ["2026-07-28"]
    assert found["resultType"] == "complete"
    call = {"name": "list_inboxes", "arguments": {}}
    assert (await stateless(team, "tools/call", call)).json()["result"]["resultType"] == "complete"
    assert code(await stateless(team, "tools/call", call, mcp_name="list_emails")) == (400, MISMATCH)
    assert code(await stateless(team, "tools/list", mcp_method="ping")) == (400, MISMATCH)
    assert code(await stateless(team, "initialize", INITIALIZE)) == (404, METHOD)
    other = message("tools/list", {"_meta": {"io.modelcontextprotocol/protocolVersion": "2030-01-01"}})
    headers = {"mcp_protocol_version": "2030-01-01", "mcp_method": "tools/list"}
    refused = await posted(team, other, **headers)
    assert code(refused) == (400, VERSION)
    assert refused.json()["error"]["data"] == {"supported": ["2026-07-28"], "requested": "2030-01-01"}
    assert code(await posted(team, message("tools/list"), **headers)) == (400, PARAMS)


MAIL = {"from": "ada@harbor.example", "to": "ben@quay.example", "subject": "Tides", "text": "High at noon."}

DEEP = b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":' + b'{"a":' * 5000 + b"1" + b"}" * 5001

HOSTILE: dict[str, tuple[Any, int, int]] = {
    "a batch": ([message("tools/list"), message("tools/list")], 400, REQUEST),
    "nothing": (b"", 400, REQUEST),
    "no JSON": (b"{", 400, PARSE),
    "depth": (DEEP, 400, PARSE),
    "a text": (b'"tools/list"', 400, REQUEST),
    "another version of JSON-RPC": ({"jsonrpc": "1.0", "id": 1, "method": "ping"}, 400, REQUEST),
    "an answer": ({"jsonrpc": "2.0", "id": 1, "result": {}}, 400, REQUEST),
    "an id of null": (message("ping", id=None), 400, REQUEST),
    "an id of true": (message("ping", id=True), 400, REQUEST),
    "a long id": (message("ping", id="x" * 300), 400, REQUEST),
    "a list of parameters": ({**message("tools/call"), "params": ["list_inboxes"]}, 400, REQUEST),
    "an unknown method": (message("tools/destroy"), 200, METHOD),
    "a method that is not served": (message("resources/list"), 200, METHOD),
    "an unknown tool": (message("tools/call", {"name": "drop_tables"}), 200, PARAMS),
    "a tool without a name": (message("tools/call", {}), 200, PARAMS),
    "arguments that are no object": (
        message("tools/call", {"name": "list_inboxes", "arguments": [1]}),
        200,
        PARAMS,
    ),
}


@pytest.mark.parametrize("what", HOSTILE)
async def test_hostile_messages_get_an_error(pillarbox: World, what: str) -> None:
    body, status, expected = HOSTILE[what]
    team = await pillarbox.team()
    answer = await raw(team, body) if isinstance(body, bytes) else await posted(team, body)
    assert code(answer) == (status, expected)


async def raw(team: Team, body: bytes, media: str = "application/json") -> Any:
    return await team.http.post("/mcp", content=body, headers={"content-type": media})


async def test_a_call_that_was_right_does_not_let_a_wrong_one_in(pillarbox: World) -> None:
    team = await pillarbox.team()
    assert not (await used(team, "list_inboxes"))["isError"]
    for arguments in ([1], "all", 1):
        wrong = await posted(team, message("tools/call", {"name": "list_inboxes", "arguments": arguments}))
        assert code(wrong) == (200, PARAMS)


async def test_bodies_are_bounded_and_json(pillarbox: World) -> None:
    team = await pillarbox.team()
    assert (await raw(team, b" " * (1024 * 1024 + 1))).status_code == 413
    assert (await raw(team, b"{}", "text/plain")).status_code == 415


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("list_threads", {}, "Missing argument `inbox`."),
        ("list_threads", {"inbox": ""}, "Missing argument `inbox`."),
        ("list_threads", {"inbox": "a", "html": 1}, "Unknown argument `html`."),
        ("list_threads", {"inbox": {"a": 1}}, "Argument `inbox` must be a text"),
        ("list_threads", {"inbox": "../emails"}, "(status 422"),
        ("get_email", {"email_id": "metrics"}, "There is nothing of that name"),
        ("get_email", {"email_id": "receiving"}, "There is nothing of that name"),
        ("get_email", {"email_id": "x"}, "(status 422"),
        ("list_emails", {"limit": 101}, "Use an integer from 1 to 100."),
        ("add_suppression", {"email": "\0"}, "NUL"),
        ("send_email", {"to": 1}, "(status 422"),
        ("get_contact", {"contact": "%" * 1_000_000}, "`contact` may have at most 4000 characters."),
        ("list_contacts", {"search": "%" * 1_000_000}, "`search` may have at most 4000 characters."),
        ("send_email", {**MAIL, "idempotency_key": ""}, "(status 400, invalid_idempotency_key)"),
        ("send_email", {**MAIL, "idempotency_key": ["a"]}, "Argument `idempotency_key` must be a text"),
        ("send_email", {**MAIL, "idempotency_key": "a\r\nx: y"}, "(status 400, invalid_idempotency_key)"),
    ],
)
async def test_wrong_arguments_tell_a_model_what_to_change(
    pillarbox: World, tool: str, arguments: dict[str, Any], told: str
) -> None:
    result = await used(await pillarbox.team(), tool, **arguments)
    assert result["isError"] is True
    assert told in result["content"][0]["text"]


async def test_another_team_is_not_there(pillarbox: World) -> None:
    harbor, quay = await pillarbox.team(), await pillarbox.team("Quay")
    await harbor.domain()
    email = await harbor.send()
    refused = await used(quay, "get_email", email_id=email)
    assert "(status 404" in refused["content"][0]["text"]


async def test_large_bodies_do_not_make_what_a_tool_shows_of_them_too_large(pillarbox: World) -> None:
    team = await pillarbox.team()
    await team.domain()
    email = await team.send(html="<p>" + "Tide. " * 200_000, text="Tide. " * 2_000)
    shown = (await used(team, "get_email", email_id=email))["structuredContent"]
    assert "html" not in shown
    assert len(shown["text"]) == 8000


async def test_a_call_that_would_show_too_much_is_refused(
    pillarbox: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = await pillarbox.team()
    await used(team, "add_suppression", email="ben@quay.example")
    monkeypatch.setattr(server, "LARGEST_RESULT", 100)
    refused = await used(team, "list_suppressions")
    assert (refused["isError"], refused["content"][0]["text"]) == (True, server.TOO_LARGE)
    monkeypatch.setattr(calls, "LARGEST_ANSWER", 100)
    assert (await used(team, "list_suppressions"))["content"] == refused["content"]


HOSTILE_MAIL = (
    "From: =?utf-8?q?Iris=E2=80=AE_https=3A//evil.example/=3Fa=3D1?= <iris@www.customer.example>\r\n"
    "Reply-To: =?utf-8?q?Bank=E2=80=8B?= <bank@quay.example>\r\n"
    "To: help@harbor.example\r\n"
    "Subject: =?utf-8?q?Pay=E2=80=8B_now_https=3A//evil.example/=3Fkey=3D1?=\r\n"
    "Content-Type: application/pdf\r\n"
    "Content-Disposition: attachment; filename*=utf-8''a%E2%80%AEfdp.exe\r\n\r\nWhere is it?\r\n"
)


async def test_what_strangers_wrote_into_heads_comes_as_safe_lines(database_url: str, tmp_path: Path) -> None:
    async with inbox_mail(database_url, tmp_path) as mail:
        inbox = await mail.inbox("help@harbor.example")
        await mail.client.deliver(HOSTILE_MAIL.encode(), ["help@harbor.example"], "iris@www.customer.example")
        [thread] = await mail.threads(inbox)
        ids = {"inbox": inbox, "thread_id": thread["id"]}
        [message] = await mail.emails(inbox, thread)
        seen = {
            tool: (await used(mail.team, tool, **arguments))["content"][0]["text"]
            for tool, arguments in {
                "list_threads": {"inbox": inbox},
                "wait_for_mail": {"inbox": inbox},
                "search_threads": {"inbox": inbox, "query": "pay"},
                "list_messages": ids,
                "read_message": {**ids, "email_id": message["id"]},
                "check_trust": {**ids, "email_id": message["id"]},
                "update_thread": {**ids, "read": True},
                "list_received_emails": {},
            }.items()
        }
    for tool, text in seen.items():
        assert "evil.example/" not in text, tool
        assert not {"\u202e", "\u200b"} & set(text), tool
        if tool not in ("update_thread", "check_trust"):
            assert "<iris@www.customer.example>" in text, tool
    assert "Pay now [link](evil.example)" in seen["list_threads"]
