"""The official Python SDK's inboxes: every method, also those that do not wait (inboxes.md)."""

from __future__ import annotations

import asyncio
import inspect
import re
import smtplib
from collections.abc import Iterator
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any

import pytest
import resend
from resend import exceptions

from kit.served import Server, sdk_at, serving

INBOXES: Any = resend.Inboxes
AGENT: Any = resend.Inboxes.Agent
LABELS: Any = resend.Inboxes.Labels
THREADS: Any = resend.Inboxes.Threads
EMAILS: Any = resend.Inboxes.Threads.Emails
THREAD_LABELS: Any = resend.Inboxes.Threads.Labels
DRAFTS: Any = resend.Inboxes.Drafts

CLASSES = ("INBOXES", "AGENT", "LABELS", "THREADS", "EMAILS", "THREAD_LABELS", "DRAFTS")

CALL = re.compile(r"sdk\(\s*([A-Z_]+),\s*\"(\w+)\"")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = {"smtp": "127.0.0.1:0", "hostname": "mx.pillar.example", "processes": "1"}
    settings["inbound_require_dns"] = "false"
    with serving(tmp_path_factory.mktemp("sdk-inboxes"), **settings) as running:
        with sdk_at(running.url):
            wanted: Any = {"name": "harbor.example", "capabilities": {"receiving": "enabled"}}
            resend.Domains.create(wanted)
        yield running
        assert running.stopped() == 0


class Sdk:
    """The SDK, through its methods that wait or through the others."""

    def __init__(self, server: Server, *, waits: bool) -> None:
        self._server = server
        self._waits = waits
        self.address = "waits@harbor.example" if waits else "async@harbor.example"

    def __call__(self, owner: Any, method: str, *given: Any) -> Any:
        if self._waits:
            return getattr(owner, method)(*given)
        return asyncio.run(self._ran(getattr(owner, f"{method}_async"), given))

    async def _ran(self, method: Any, given: tuple[Any, ...]) -> Any:
        return await method(*given)

    def receives(self, subject: str, text: str, **headers: str) -> None:
        """A customer's mail server brings a mail."""
        made = EmailMessage(policy=default)
        made["From"] = "Iris Vale <iris@customer.example>"
        made["To"] = self.address
        made["Subject"] = subject
        made["Message-ID"] = headers.pop("message_id")
        for name, value in headers.items():
            made[name.replace("_", "-")] = value
        made.set_content(text)
        made.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="invoice.pdf")
        ready = next(line for line in self._server.out.all if line.startswith("ready"))
        port = int(dict(part.split("=") for part in ready.split()[1:])["smtp"].rpartition(":")[2])
        with smtplib.SMTP("127.0.0.1", port, "[127.0.0.1]", timeout=30) as client:
            client.send_message(made, "iris@customer.example", [self.address])


@pytest.fixture(params=[True, False], ids=["waiting", "asynchronous"])
def sdk(server: Server, request: pytest.FixtureRequest) -> Iterator[Sdk]:
    with sdk_at(server.url):
        yield Sdk(server, waits=request.param)


@pytest.fixture
def inbox(sdk: Sdk) -> Iterator[str]:
    """The address of an inbox."""
    made = sdk(INBOXES, "create", {"email_address": sdk.address, "from_name": "Mina at Harbor"})
    yield sdk.address
    sdk(INBOXES, "remove", made["id"])


@pytest.fixture
def asked(sdk: Sdk, inbox: str) -> dict[str, Any]:
    """A thread in which a customer asks."""
    sdk.receives("Refund for order 88", "Where is it?\n\n> Soon.\n", message_id="<88.a1@customer.example>")
    [thread] = sdk(THREADS, "list", inbox)["data"]
    found: dict[str, Any] = thread
    return found


def test_inboxes(sdk: Sdk) -> None:
    made = sdk(INBOXES, "create", {"email_address": sdk.address, "name": "Help desk", "from_name": "Mina"})
    assert made["object"] == "inbox"
    shown = sdk(INBOXES, "get", sdk.address)
    assert (shown["id"], shown["name"], shown["email_address"]) == (made["id"], "Help desk", sdk.address)
    assert (shown["from_name"], shown["friendly_name"]) == ("Mina", "Mina")
    assert (shown["unread"], shown["drafts"], shown["last_received"]) == (0, 0, None)
    listed = sdk(INBOXES, "list", {"limit": 1})
    assert [one["id"] for one in listed["data"]] == [made["id"]]
    assert sdk(INBOXES, "update", {"id": sdk.address.upper(), "name": "Support"})["id"] == made["id"]
    assert sdk(INBOXES, "get", made["id"])["name"] == "Support"
    with pytest.raises(exceptions.ResendError) as refused:
        sdk(INBOXES, "create", {"email_address": sdk.address})
    assert refused.value.code == 409
    assert sdk(INBOXES, "remove", sdk.address)["deleted"] is True
    with pytest.raises(exceptions.ResendError) as gone:
        sdk(INBOXES, "get", made["id"])
    assert gone.value.code == 404


def test_agent_settings(sdk: Sdk, inbox: str) -> None:
    unset = sdk(AGENT, "get", inbox)
    shown = {name: unset[name] for name in unset if name != "http_headers"}
    assert shown == {"object": "inbox_agent", "instructions": None, "tone": None, "actions": []}
    wanted = {"inbox_id": inbox, "tone": "concise_casual", "actions": ["archive", "draft_reply"]}
    assert sdk(AGENT, "update", wanted)["object"] == "inbox_agent"
    shown = sdk(AGENT, "get", inbox)
    assert (shown["tone"], shown["actions"]) == ("concise_casual", ["draft_reply", "archive"])


def test_labels(sdk: Sdk, inbox: str) -> None:
    made = sdk(LABELS, "create", {"inbox_id": inbox, "name": "Refunds", "color": "crimson"})
    assert made["object"] == "inbox_label"
    change = {"inbox_id": inbox, "id": made["id"], "name": "Money"}
    assert sdk(LABELS, "update", change)["id"] == made["id"]
    [shown] = sdk(LABELS, "list", inbox)["data"]
    assert (shown["name"], shown["color"]) == ("Money", "#E93D82")
    assert sdk(LABELS, "remove", inbox, made["id"])["deleted"] is True
    assert sdk(LABELS, "list", inbox)["data"] == []


def test_threads(sdk: Sdk, inbox: str, asked: dict[str, Any]) -> None:
    assert (asked["subject"], asked["read"], asked["has_attachment"]) == ("Refund for order 88", False, True)
    assert (asked["email_count"], asked["message_count"], asked["folder"]) == (1, 1, "inbox")
    shown = sdk(THREADS, "get", inbox, asked["id"])
    assert (shown["object"], shown["folder"], shown["labels"]) == ("inbox_thread", "inbox", [])
    changed = sdk(
        THREADS, "update", {"inbox_id": inbox, "id": asked["id"], "read": True, "folder": "archive"}
    )
    assert (changed["read"], changed["folder"]) == (True, "archive")
    assert sdk(THREADS, "list", inbox, {"folders": []})["data"] == []
    wanted = {"folders": ["archive", "sent"], "read": True, "limit": 5}
    assert [one["id"] for one in sdk(THREADS, "list", inbox, wanted)["data"]] == [asked["id"]]
    first = sdk(THREADS, "remove", inbox, asked["id"])
    assert (first["object"], first["deleted"]) == ("inbox_thread", True)
    assert sdk(THREADS, "remove", inbox, asked["id"])["deleted"] is False


def test_search(sdk: Sdk, inbox: str, asked: dict[str, Any]) -> None:
    wanted = {"query": "where invoice.pdf -nonsense", "from": ["iris@"], "has_attachment": True}
    [found] = sdk(THREADS, "search", inbox, wanted)["data"]
    assert found["id"] == asked["id"]
    [message] = sdk(EMAILS, "list", inbox, asked["id"])["data"]
    assert found["matched_email_id"] == message["id"]
    assert sdk(THREADS, "search", inbox, {"query": "nonsense"})["data"] == []


def test_thread_labels(sdk: Sdk, inbox: str, asked: dict[str, Any]) -> None:
    ids = [sdk(LABELS, "create", {"inbox_id": inbox, "name": name})["id"] for name in ("One", "Two", "Three")]
    place = {"inbox_id": inbox, "thread_id": asked["id"]}
    assert [one["id"] for one in sdk(THREAD_LABELS, "add", {**place, "labels": ids[:1]})["data"]] == ids[:1]
    assert [one["id"] for one in sdk(THREAD_LABELS, "set", {**place, "labels": ids[:0:-1]})["data"]] == ids[
        1:
    ]
    left = sdk(THREAD_LABELS, "remove", inbox, asked["id"], ids[1])["data"]
    assert [one["name"] for one in left] == ["Three"]
    wanted = {"labels": [ids[2]]}
    assert [one["id"] for one in sdk(THREADS, "list", inbox, wanted)["data"]] == [asked["id"]]


def test_messages_replies_and_forwards(sdk: Sdk, inbox: str, asked: dict[str, Any]) -> None:
    [message] = sdk(EMAILS, "list", inbox, asked["id"], {"limit": 10})["data"]
    assert (message["direction"], message["to"], message["read"]) == ("inbound", [sdk.address], False)
    shown = sdk(EMAILS, "get", inbox, asked["id"], message["id"])
    assert (shown["message_id"], shown["extracted_text"]) == ("<88.a1@customer.example>", "Where is it?")
    assert [one["filename"] for one in shown["attachments"]] == ["invoice.pdf"]
    assert resend.Emails.Receiving.get(message["id"])["id"] == message["id"]
    place = {"inbox_id": inbox, "thread_id": asked["id"], "email_id": message["id"]}
    key = {"idempotency_key": f"reply-{message['id']}"}
    sent = sdk(EMAILS, "reply", {**place, "text": "It left today."}, key)
    assert sdk(EMAILS, "reply", {**place, "text": "It left today."}, key)["id"] == sent["id"]
    assert resend.Emails.get(sent["id"])["subject"] == "Re: Refund for order 88"
    forwarded = sdk(EMAILS, "forward", {**place, "to": "boss@quay.example", "text": "See below."})
    assert resend.Emails.get(forwarded["id"])["to"] == ["boss@quay.example"]
    thread = sdk(EMAILS, "list", inbox, asked["id"])["data"]
    assert [one["id"] for one in thread] == [message["id"], sent["id"], forwarded["id"]]
    sdk.receives(
        "Re: Refund for order 88",
        "Thanks!",
        message_id="<88.a2@customer.example>",
        In_Reply_To=thread[1]["message_id"],
    )
    assert sdk(THREADS, "list", inbox)["data"][0]["email_count"] == 4


def test_drafts(sdk: Sdk, inbox: str) -> None:
    file = {"content": "QmVydGg=", "filename": "berth.txt", "content_type": "text/plain"}
    wanted = {"inbox_id": inbox, "to": "iris@customer.example", "subject": "Your order", "text": "Hi Iris"}
    made = sdk(DRAFTS, "create", {**wanted, "attachments": [file]}, {"idempotency_key": f"draft-{inbox}"})
    assert made["object"] == "inbox_draft"
    [listed] = sdk(DRAFTS, "list", inbox, {"limit": 5})["data"]
    assert (listed["id"], listed["snippet"], listed["type"]) == (made["id"], "Hi Iris", "standalone")
    assert (
        sdk(DRAFTS, "update", {"inbox_id": inbox, "id": made["id"], "html": "<p>Hi</p>"})["id"] == made["id"]
    )
    shown = sdk(DRAFTS, "get", inbox, made["id"])
    assert (shown["html"], shown["text"], shown["email_id"]) == ("<p>Hi</p>", None, None)
    assert [one["filename"] for one in shown["attachments"]] == ["berth.txt"]
    assert sdk(INBOXES, "get", inbox)["drafts"] == 1
    sent = sdk(DRAFTS, "send", inbox, made["id"])
    assert sent["id"] == made["id"]
    assert resend.Emails.get(sent["email_id"])["to"] == ["iris@customer.example"]
    # GET /emails finds it by the id of its draft as well.
    assert resend.Emails.get(sent["id"])["id"] == sent["email_id"]
    with pytest.raises(exceptions.ResendError) as again:
        sdk(DRAFTS, "send", inbox, made["id"], {}, {"idempotency_key": "another"})
    assert again.value.code == 409
    dropped = sdk(DRAFTS, "create", wanted)
    assert sdk(DRAFTS, "remove", inbox, dropped["id"])["deleted"] is True
    assert sdk(DRAFTS, "list", inbox)["data"] == []


def test_every_method_was_called() -> None:
    """This file calls all that the classes have; each call is made by the method that waits and the other."""
    called = set(CALL.findall(Path(__file__).read_text("utf-8")))
    there = {
        (name, method)
        for name in CLASSES
        for method, _ in inspect.getmembers(globals()[name], inspect.ismethod)
        if not method.startswith("_")
    }
    assert {(name, method.removesuffix("_async")) for name, method in there} == called
    assert {(name, f"{method}_async") for name, method in called} <= there
