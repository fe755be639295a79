"""The official Python SDK's inboxes: every method, also those that do not wait (inboxes.md)."""

from __future__ import annotations

import asyncio
import inspect
import smtplib
from collections.abc import Iterator
from email.message import EmailMessage
from email.policy import default
from typing import Any

import pytest
import resend
from resend import exceptions

from kit.served import Server, sdk_at, serving

METHODS = {
    resend.Inboxes: {"create", "list", "get", "update", "remove"},
    resend.Inboxes.Agent: {"get", "update"},
    resend.Inboxes.Labels: {"list", "create", "update", "remove"},
    resend.Inboxes.Threads: {"list", "search", "get", "update", "remove"},
    resend.Inboxes.Threads.Emails: {"list", "get", "reply", "forward"},
    resend.Inboxes.Threads.Labels: {"add", "set", "remove"},
    resend.Inboxes.Drafts: {"list", "create", "get", "update", "remove", "send"},
}
"""What this file calls."""

CALLED: set[tuple[type, str]] = set()


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
        assert method in METHODS[owner]
        CALLED.add((owner, method if self._waits else f"{method}_async"))
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
            client.send_message(made, "", [self.address])


@pytest.fixture(params=[True, False], ids=["waiting", "asynchronous"])
def sdk(server: Server, request: pytest.FixtureRequest) -> Iterator[Sdk]:
    with sdk_at(server.url):
        yield Sdk(server, waits=request.param)


@pytest.fixture
def inbox(sdk: Sdk) -> Iterator[str]:
    """The address of an inbox."""
    made = sdk(resend.Inboxes, "create", {"email_address": sdk.address, "from_name": "Mina at Harbor"})
    yield sdk.address
    sdk(resend.Inboxes, "remove", made["id"])


@pytest.fixture
def asked(sdk: Sdk, inbox: str) -> dict[str, Any]:
    """A thread in which a customer asks."""
    sdk.receives("Refund for order 88", "Where is it?\n\n> Soon.\n", message_id="<88.a1@customer.example>")
    [thread] = sdk(resend.Inboxes.Threads, "list", inbox)["data"]
    found: dict[str, Any] = thread
    return found


def test_all_methods_of_the_sdk_are_known() -> None:
    for owner, known in METHODS.items():
        found = {name for name, _ in inspect.getmembers(owner, inspect.ismethod) if not name.startswith("_")}
        assert found == known | {f"{name}_async" for name in known}, owner


def test_inboxes(sdk: Sdk) -> None:
    inboxes = resend.Inboxes
    made = sdk(inboxes, "create", {"email_address": sdk.address, "name": "Help desk", "from_name": "Mina"})
    assert made["object"] == "inbox"
    shown = sdk(inboxes, "get", sdk.address)
    assert (shown["id"], shown["name"], shown["email_address"]) == (made["id"], "Help desk", sdk.address)
    assert (shown["from_name"], shown["friendly_name"]) == ("Mina", "Mina")
    assert (shown["unread"], shown["drafts"], shown["last_received"]) == (0, 0, None)
    listed = sdk(inboxes, "list", {"limit": 1})
    assert [one["id"] for one in listed["data"]] == [made["id"]]
    assert sdk(inboxes, "update", {"id": sdk.address.upper(), "name": "Support"})["id"] == made["id"]
    assert sdk(inboxes, "get", made["id"])["name"] == "Support"
    with pytest.raises(exceptions.ResendError) as refused:
        sdk(inboxes, "create", {"email_address": sdk.address})
    assert refused.value.code == 409
    assert sdk(inboxes, "remove", sdk.address)["deleted"] is True
    with pytest.raises(exceptions.ResendError) as gone:
        sdk(inboxes, "get", made["id"])
    assert gone.value.code == 404


def test_agent_settings(sdk: Sdk, inbox: str) -> None:
    agent = resend.Inboxes.Agent
    unset = sdk(agent, "get", inbox)
    shown = {name: unset[name] for name in unset if name != "http_headers"}
    assert shown == {"object": "inbox_agent", "instructions": None, "tone": None, "actions": []}
    wanted = {"inbox_id": inbox, "tone": "concise_casual", "actions": ["archive", "draft_reply"]}
    assert sdk(agent, "update", wanted)["object"] == "inbox_agent"
    shown = sdk(agent, "get", inbox)
    assert (shown["tone"], shown["actions"]) == ("concise_casual", ["draft_reply", "archive"])


def test_labels(sdk: Sdk, inbox: str) -> None:
    labels = resend.Inboxes.Labels
    made = sdk(labels, "create", {"inbox_id": inbox, "name": "Refunds", "color": "crimson"})
    assert made["object"] == "inbox_label"
    change = {"inbox_id": inbox, "id": made["id"], "name": "Money"}
    assert sdk(labels, "update", change)["id"] == made["id"]
    [shown] = sdk(labels, "list", inbox)["data"]
    assert (shown["name"], shown["color"]) == ("Money", "#E93D82")
    assert sdk(labels, "remove", inbox, made["id"])["deleted"] is True
    assert sdk(labels, "list", inbox)["data"] == []


def test_threads(sdk: Sdk, inbox: str, asked: dict[str, Any]) -> None:
    threads = resend.Inboxes.Threads
    assert (asked["subject"], asked["read"], asked["has_attachment"]) == ("Refund for order 88", False, True)
    assert (asked["email_count"], asked["message_count"], asked["folder"]) == (1, 1, "inbox")
    shown = sdk(threads, "get", inbox, asked["id"])
    assert (shown["object"], shown["folder"], shown["labels"]) == ("inbox_thread", "inbox", [])
    changed = sdk(
        threads, "update", {"inbox_id": inbox, "id": asked["id"], "read": True, "folder": "archive"}
    )
    assert (changed["read"], changed["folder"]) == (True, "archive")
    assert sdk(threads, "list", inbox, {"folders": []})["data"] == []
    wanted = {"folders": ["archive", "sent"], "read": True, "limit": 5}
    assert [one["id"] for one in sdk(threads, "list", inbox, wanted)["data"]] == [asked["id"]]
    first = sdk(threads, "remove", inbox, asked["id"])
    assert (first["object"], first["deleted"]) == ("inbox_thread", True)
    assert sdk(threads, "remove", inbox, asked["id"])["deleted"] is False


def test_search(sdk: Sdk, inbox: str, asked: dict[str, Any]) -> None:
    threads = resend.Inboxes.Threads
    wanted = {"query": "where invoice.pdf -nonsense", "from": ["iris@"], "has_attachment": True}
    [found] = sdk(threads, "search", inbox, wanted)["data"]
    assert found["id"] == asked["id"]
    [message] = sdk(threads.Emails, "list", inbox, asked["id"])["data"]
    assert found["matched_email_id"] == message["id"]
    assert sdk(threads, "search", inbox, {"query": "nonsense"})["data"] == []


def test_thread_labels(sdk: Sdk, inbox: str, asked: dict[str, Any]) -> None:
    of_thread = resend.Inboxes.Threads.Labels
    ids = [
        sdk(resend.Inboxes.Labels, "create", {"inbox_id": inbox, "name": name})["id"]
        for name in ("One", "Two", "Three")
    ]
    place = {"inbox_id": inbox, "thread_id": asked["id"]}
    assert [one["id"] for one in sdk(of_thread, "add", {**place, "labels": ids[:1]})["data"]] == ids[:1]
    assert [one["id"] for one in sdk(of_thread, "set", {**place, "labels": ids[:0:-1]})["data"]] == ids[1:]
    left = sdk(of_thread, "remove", inbox, asked["id"], ids[1])["data"]
    assert [one["name"] for one in left] == ["Three"]
    wanted = {"labels": [ids[2]]}
    assert [one["id"] for one in sdk(resend.Inboxes.Threads, "list", inbox, wanted)["data"]] == [asked["id"]]


def test_messages_replies_and_forwards(sdk: Sdk, inbox: str, asked: dict[str, Any]) -> None:
    emails = resend.Inboxes.Threads.Emails
    [message] = sdk(emails, "list", inbox, asked["id"], {"limit": 10})["data"]
    assert (message["direction"], message["to"], message["read"]) == ("inbound", [sdk.address], False)
    shown = sdk(emails, "get", inbox, asked["id"], message["id"])
    assert (shown["message_id"], shown["extracted_text"]) == ("<88.a1@customer.example>", "Where is it?")
    assert [one["filename"] for one in shown["attachments"]] == ["invoice.pdf"]
    assert resend.Emails.Receiving.get(message["id"])["id"] == message["id"]
    place = {"inbox_id": inbox, "thread_id": asked["id"], "email_id": message["id"]}
    key = {"idempotency_key": f"reply-{message['id']}"}
    sent = sdk(emails, "reply", {**place, "text": "It left today."}, key)
    assert sdk(emails, "reply", {**place, "text": "It left today."}, key)["id"] == sent["id"]
    assert resend.Emails.get(sent["id"])["subject"] == "Re: Refund for order 88"
    forwarded = sdk(emails, "forward", {**place, "to": "boss@quay.example", "text": "See below."})
    assert resend.Emails.get(forwarded["id"])["to"] == ["boss@quay.example"]
    thread = sdk(emails, "list", inbox, asked["id"])["data"]
    assert [one["id"] for one in thread] == [message["id"], sent["id"], forwarded["id"]]
    sdk.receives(
        "Re: Refund for order 88",
        "Thanks!",
        message_id="<88.a2@customer.example>",
        In_Reply_To=thread[1]["message_id"],
    )
    assert sdk(resend.Inboxes.Threads, "list", inbox)["data"][0]["email_count"] == 4


def test_drafts(sdk: Sdk, inbox: str) -> None:
    drafts = resend.Inboxes.Drafts
    file = {"content": "QmVydGg=", "filename": "berth.txt", "content_type": "text/plain"}
    wanted = {"inbox_id": inbox, "to": "iris@customer.example", "subject": "Your order", "text": "Hi Iris"}
    made = sdk(drafts, "create", {**wanted, "attachments": [file]}, {"idempotency_key": f"draft-{inbox}"})
    assert made["object"] == "inbox_draft"
    [listed] = sdk(drafts, "list", inbox, {"limit": 5})["data"]
    assert (listed["id"], listed["snippet"], listed["type"]) == (made["id"], "Hi Iris", "standalone")
    assert (
        sdk(drafts, "update", {"inbox_id": inbox, "id": made["id"], "html": "<p>Hi</p>"})["id"] == made["id"]
    )
    shown = sdk(drafts, "get", inbox, made["id"])
    assert (shown["html"], shown["text"], shown["email_id"]) == ("<p>Hi</p>", None, None)
    assert [one["filename"] for one in shown["attachments"]] == ["berth.txt"]
    assert sdk(resend.Inboxes, "get", inbox)["drafts"] == 1
    sent = sdk(drafts, "send", inbox, made["id"])
    assert sent["id"] == made["id"]
    assert resend.Emails.get(sent["email_id"])["to"] == ["iris@customer.example"]
    # GET /emails finds it by the id of its draft as well.
    assert resend.Emails.get(sent["id"])["id"] == sent["email_id"]
    with pytest.raises(exceptions.ResendError) as again:
        sdk(drafts, "send", inbox, made["id"], {}, {"idempotency_key": "another"})
    assert again.value.code == 409
    dropped = sdk(drafts, "create", wanted)
    assert sdk(drafts, "remove", inbox, dropped["id"])["deleted"] is True
    assert sdk(drafts, "list", inbox)["data"] == []


def test_every_method_was_called() -> None:
    wanted = {
        (owner, name)
        for owner, names in METHODS.items()
        for method in names
        for name in (method, f"{method}_async")
    }
    assert wanted == CALLED
