"""The official MCP server (npm `resend-mcp`) over stdio: every tool once, against the real program."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kit.node_packages import command
from kit.official_clients import CLAIMED, FROM, Place, client_server
from repository.running import TIMEOUT

if TYPE_CHECKING:
    from conftest import Databases

CONTACT = "iris@customer.example"
PROTOCOL = "2025-06-18"
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
EDITOR = {
    "get-tiptap-json-content",
    "connect-to-editor",
    "disconnect-from-editor",
    "compose-broadcast",
    "compose-template",
}
"""Tools of the editor on the pages of another company, which is not part of the API."""


class Tools:
    """The server's tools; remembers which of them answered without an error."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._numbers = itertools.count(1)
        self.done: set[str] = set()
        hello = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        self.request("initialize", hello)
        self._write({"method": "notifications/initialized"})
        self.names = {tool["name"] for tool in self.request("tools/list", {})["tools"]}

    def _write(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._process.stdin.flush()

    def request(self, method: str, parameters: dict[str, Any]) -> Any:
        assert self._process.stdout is not None
        number = next(self._numbers)
        self._write({"id": number, "method": method, "params": parameters})
        while True:
            answer = json.loads(self._process.stdout.readline())
            if answer.get("id") == number:
                return answer["result"]

    def attempt(self, tool: str, **arguments: Any) -> tuple[str, bool]:
        """Call a tool; return its text and whether it failed."""
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        return "\n".join(part.get("text", "") for part in result["content"]), bool(result.get("isError"))

    def __call__(self, tool: str, **arguments: Any) -> str:
        """Call a tool, which must do what it is for; return its text."""
        text, failed = self.attempt(tool, **arguments)
        assert not failed, f"{tool}: {text}"
        self.done.add(tool)
        return text

    def id_of(self, tool: str, **arguments: Any) -> str:
        """Call a tool; return the first id in its text."""
        text = self(tool, **arguments)
        found = UUID.search(text)
        assert found is not None, f"{tool}: {text}"
        return found[0]


def until(question: Callable[[], Any]) -> Any:
    """Return the first answer that is true."""
    end = time.monotonic() + TIMEOUT
    while not (found := question()):
        assert time.monotonic() < end
        time.sleep(0.1)
    return found


def emails(tools: Tools) -> None:
    mail = {"to": ["ada@quay.example"], "subject": "Berth 12", "text": "Ready"}
    plan = {"filename": "plan.txt", "content": "dGlkZQ==", "contentType": "text/plain"}
    named = {"tags": [{"name": "kind", "value": "berth"}], "headers": {"X-Tide": "low"}}
    sent = tools.id_of("send-email", **mail, **named, attachments=[plan], idempotencyKey="mcp-1")
    assert "Berth 12" in tools("get-email", id=sent)
    assert sent in tools("list-emails", limit=5)
    attachment = tools.id_of("list-sent-email-attachments", emailId=sent)
    assert "plan.txt" in tools("get-sent-email-attachment", emailId=sent, id=attachment)
    assert "http" in tools("share-email", id=sent, expiresIn="2h")
    assert "sent" in tools("get-email-metrics", metrics=["sent"], dimensions=["period"], granularity="daily")
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    planned = tools.id_of("send-email", **mail, scheduledAt=later)
    tools("update-email", id=planned, scheduledAt="in 2 hours")
    tools("cancel-email", id=planned)
    assert "2 email" in tools("send-batch-emails", emails=[mail, {**mail, "cc": ["bo@quay.example"]}])


def received(tools: Tools, place: Place) -> None:
    assert place.email_id in tools("list-received-emails", limit=5)
    assert "Which berth?" in tools("get-received-email", id=place.email_id)
    attachment = tools.id_of("list-received-email-attachments", emailId=place.email_id)
    assert "plan.pdf" in tools("get-received-email-attachment", emailId=place.email_id, id=attachment)


def domains(tools: Tools) -> None:
    made = tools.id_of(
        "create-domain", name="pier.example", region="eu-west-1", customReturnPath="bounce", tls="enforced",
        trackingSubdomain="links", openTracking=True, capabilities={"receiving": "enabled"},
    )  # fmt: skip
    assert "pier.example" in tools("get-domain", id=made)
    tools("list-domains", limit=5)
    tools("update-domain", id=made, clickTracking=True, tls="opportunistic")
    tools("verify-domain", id=made)
    tools("remove-domain", id=made)
    text = tools("create-domain-claim", name=CLAIMED, customReturnPath="bounce")
    found = [id_ for id_ in UUID.findall(text) if not tools.attempt("get-domain-claim", id=id_)[1]]
    assert found, text
    tools("get-domain-claim", id=found[0])
    tools("verify-domain-claim", id=found[0])


def audience(tools: Tools) -> tuple[str, str]:
    segment = tools.id_of("create-segment", name="Crew")
    assert "Crew" in tools("get-segment", id=segment)
    tools("list-segments", limit=5)
    tools("update-segment", id=segment, name="Crews")
    topic = tools.id_of("create-topic", name="Tides", defaultSubscription="opt_in", description="Daily")
    assert "Tides" in tools("get-topic", id=topic)
    tools("list-topics")
    tools("update-topic", id=topic, name="Tide tables")
    key = tools.id_of("create-contact-property", key="boat", type="string", fallbackValue="none")
    assert "boat" in tools("get-contact-property", contactPropertyId=key)
    tools("list-contact-properties", limit=5)
    tools("update-contact-property", contactPropertyId=key, fallbackValue=None)
    choice = [{"id": topic, "subscription": "opt_in"}]
    made = tools.id_of(
        "create-contact", email=CONTACT, firstName="Iris", properties={"boat": "Gull"}, segmentIds=[segment],
        topics=choice,
    )  # fmt: skip
    assert "Iris" in tools("get-contact", email=CONTACT)
    tools("list-contacts", segmentId=segment, limit=5)
    tools("update-contact", id=made, lastName="Vale", unsubscribed=False)
    tools("remove-contact-from-segment", email=CONTACT, segmentId=segment)
    tools("add-contact-to-segment", contactId=made, segmentId=segment)
    assert segment in tools("list-contact-segments", email=CONTACT)
    tools("update-contact-topics", email=CONTACT, topics=choice)
    assert topic in tools("list-contact-topics", id=made)
    imported = tools.id_of(
        "create-contact-import", content="Email\nkim@customer.example\n", columnMap={"email": "Email"},
        segmentIds=[segment], topics=choice, onConflict="upsert",
    )  # fmt: skip
    until(lambda: "completed" in tools("get-contact-import", id=imported))
    assert imported in tools("list-contact-imports", status="completed")
    tools("remove-contact", email="kim@customer.example")
    tools("remove-contact-property", contactPropertyId=key)
    return segment, topic


def templates(tools: Tools) -> str:
    made = tools.id_of(
        "create-template", name="Welcome", html="<p>Hi {{{NAME}}}</p>", subject="Hi", alias="welcome",
        variables=[{"key": "NAME", "type": "string", "fallbackValue": "you"}], **{"from": FROM},
    )  # fmt: skip
    assert "Welcome" in tools("get-template", id="welcome")
    tools("list-templates", limit=5)
    tools("update-template", id=made, text="Hi", replyTo="r@harbor.example")
    tools("publish-template", id=made)
    copy = next(id_ for id_ in UUID.findall(tools("duplicate-template", id=made)) if id_ != made)
    tools("remove-template", id=copy)
    return made


def broadcasts(tools: Tools, segment: str) -> None:
    made = tools.id_of(
        "create-broadcast", name="May", segmentId=segment, subject="News", text="Tide",
        html="<p>{{{RESEND_UNSUBSCRIBE_URL}}}</p>", previewText="Soon", replyTo=["r@harbor.example"],
    )  # fmt: skip
    tools("update-broadcast", broadcastId=made, name="News of May", subject="May")
    assert "News of May" in tools("get-broadcast", broadcastId=made)
    tools("list-broadcasts")
    tools("send-broadcast", broadcastId=made, scheduledAt="in 1 hour")
    tools("cancel-broadcast", broadcastId=made)
    copy = next(id_ for id_ in UUID.findall(tools("duplicate-broadcast", broadcastId=made)) if id_ != made)
    tools("send-broadcast", broadcastId=copy)
    recipients = {"broadcastId": copy, "type": "sent", "limit": 5}
    until(lambda: CONTACT in tools("list-broadcast-recipients", **recipients))
    tools("list-broadcast-clicked-links", broadcastId=copy)
    tools("remove-broadcast", broadcastId=made)


def automations(tools: Tools, segment: str, template: str) -> None:
    named = {"name": "boat.moored", "schema": {"berth": "number"}}
    tools("manage-events", action="create", **named)
    for arguments in ({"action": "list"}, {"action": "get", "identifier": "boat.moored"}):
        assert "boat.moored" in tools("manage-events", **arguments)
    tools("manage-events", action="update", identifier="boat.moored", schema={"boat": "string"})
    mail = {"template": {"id": template, "variables": {"NAME": {"var": "event.boat"}}}, "from": FROM}
    names = {"firstName": "Iris", "lastName": None, "unsubscribed": False}
    wait = {"eventName": "resend:email.opened", "timeout": "1 hour"}
    split = {"type": "rule", "field": "event.boat", "operator": "eq", "value": "Gull"}
    steps = [
        {"key": "start", "type": "trigger", "config": {"eventName": "boat.moored"}, "next": "rule"},
        {"key": "rule", "type": "condition", "config": split,
         "branches": {"condition_met": "mail", "condition_not_met": None}},
        {"key": "mail", "type": "send_email", "config": mail, "next": "names"},
        {"key": "names", "type": "contact_update", "config": names, "next": "crew"},
        {"key": "crew", "type": "add_to_segment", "config": {"segmentId": segment}, "next": "wait"},
        {"key": "wait", "type": "wait_for_event", "config": wait,
         "branches": {"event_received": "pause", "timeout": "gone"}},
        {"key": "pause", "type": "delay", "config": {"duration": "1 day"}, "next": None},
        {"key": "gone", "type": "contact_delete", "config": {}, "next": None},
    ]  # fmt: skip
    made = tools.id_of("create-automation", name="Moored", status="enabled", workflow={"steps": steps})
    assert "wait_for_event" in tools("get-automation", id=made)
    assert made in tools("get-automation", status="enabled", limit=5)
    tools("send-event", event="boat.moored", email=CONTACT, payload={"boat": "Gull"})
    runs = {"automationId": made, "limit": 5}
    run = until(lambda: set(UUID.findall(tools("get-automation-runs", **runs))) - {made}).pop()
    tools("get-automation-runs", automationId=made, runId=run)
    tools("update-automation", id=made, name="Moored boats", status="disabled")
    copy = next(id_ for id_ in UUID.findall(tools("duplicate-automation", id=made)) if id_ != made)
    tools("remove-automation", id=copy)
    tools("manage-events", action="create", name="boat.left")
    tools("manage-events", action="remove", identifier="boat.left")


def suppressions(tools: Tools) -> None:
    several = ["x@quay.example", "y@quay.example"]
    tools("add-suppression", email="gone@quay.example")
    assert "gone@quay.example" in tools("get-suppression", idOrEmail="gone@quay.example")
    tools("list-suppressions", origin="manual")
    tools("remove-suppression", idOrEmail="gone@quay.example")
    tools("batch-add-suppressions", emails=several)
    tools("batch-remove-suppressions", emails=several)


def webhooks(tools: Tools) -> None:
    made = tools.id_of("create-webhook", endpoint="https://hooks.harbor.example/in", events=["email.sent"])
    assert "hooks.harbor.example" in tools("get-webhook", webhookId=made)
    tools("list-webhooks")
    tools("update-webhook", webhookId=made, events=["email.sent", "email.delivered"], status="enabled")
    tools("send-email", to=["ada@quay.example"], subject="Hi", text="There")
    found = until(lambda: re.search(r"\bmsg_\w+", tools("list-webhook-events", webhookId=made, limit=5)))[0]
    which = {"webhookId": made, "eventId": found}
    for tool in ("get-webhook-event", "replay-webhook-event", "list-webhook-event-attempts"):
        tools(tool, **which)
    tools("rotate-webhook-signing-secret", webhookId=made)
    tools("remove-webhook", webhookId=made)


def account(tools: Tools, place: Place) -> None:
    made = tools.id_of("create-api-key", name="printer", permission="sending_access")
    assert "printer" in tools("list-api-keys")
    tools("update-api-key", id=made, name="plotter")
    tools("remove-api-key", id=made)
    log = tools.id_of("list-logs", limit=1)
    assert log in tools("get-log", logId=log)
    assert "Quill" in tools("list-oauth-grants")
    tools("revoke-oauth-grant", id=str(place.grant_id))


@pytest.fixture
def place(databases: Databases, tmp_path: Path) -> Iterator[Place]:
    command("resend_mcp", "resend-mcp")
    url = databases.fresh()
    with client_server(url, tmp_path / "data") as running:
        yield running
    databases.drop(url)


@pytest.fixture
def tools(place: Place, tmp_path: Path) -> Iterator[Tools]:
    home = tmp_path / "home"
    home.mkdir()
    with subprocess.Popen(
        [*command("resend_mcp", "resend-mcp"), "--sender", FROM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=place.variables(home),
        cwd=home,
        text=True,
    ) as process:
        yield Tools(process)
        process.terminate()


def test_every_tool_of_the_server_does_what_it_is_for(tools: Tools, place: Place) -> None:
    emails(tools)
    received(tools, place)
    domains(tools)
    segment, topic = audience(tools)
    template = templates(tools)
    broadcasts(tools, segment)
    automations(tools, segment, template)
    suppressions(tools)
    webhooks(tools)
    account(tools, place)
    tools("remove-contact", email=CONTACT)
    tools("remove-segment", id=segment)
    tools("remove-topic", id=topic)
    text, failed = tools.attempt("compose-template", id=template, content={"type": "doc"})
    assert (failed, "404" in text) == (True, True), text
    assert sorted(tools.names - tools.done - EDITOR) == []
