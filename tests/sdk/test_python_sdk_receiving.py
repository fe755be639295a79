"""The official Python SDK reads received mail and its attachments (receiving.md 2, 4 and 6)."""

from __future__ import annotations

import asyncio
import smtplib
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any

import pytest
import resend
from resend import exceptions

from kit.served import Server, params, sdk_at, serving

TO = "postmaster@mx.pillar.example"
PLAN = bytes(range(256)) * 20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = {"smtp": "127.0.0.1:0", "hostname": "mx.pillar.example", "processes": "1"}
    with serving(tmp_path_factory.mktemp("sdk"), **settings) as running:
        yield running
        assert running.stopped() == 0


@pytest.fixture
def sdk(server: Server) -> Iterator[Server]:
    with sdk_at(server.url):
        yield server


def letter(subject: str) -> EmailMessage:
    """Without an author, so that nobody asks DNS about him."""
    made = EmailMessage(policy=default)
    made["To"] = TO
    made["Subject"] = subject
    made["Message-ID"] = f"<{subject}@quay.example>"
    made.set_content("See plan")
    made.add_alternative('<p>See <img src="cid:plan1"></p>', subtype="html")
    made.get_payload()[1].add_related(PLAN, "image", "png", cid="<plan1>", filename="plan.png")  # type: ignore[union-attr]
    made.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="tide table.pdf")
    return made


def received(server: Server, subject: str) -> str:
    """The id of a mail that another server brings."""
    ready = next(line for line in server.out.all if line.startswith("ready"))
    port = int(dict(part.split("=") for part in ready.split()[1:])["smtp"].rpartition(":")[2])
    with smtplib.SMTP("127.0.0.1", port, "[127.0.0.1]", timeout=30) as client:
        client.send_message(letter(subject), "", [TO])
    return str(resend.Emails.Receiving.list({"limit": 1})["data"][0]["id"])


def fetched(url: str) -> bytes:
    """What a link gives to somebody who has nothing but the link."""
    with urllib.request.urlopen(url, timeout=30) as answer:
        return bytes(answer.read())


def test_list_and_get(sdk: Server) -> None:
    email_id = received(sdk, "first")
    [listed] = resend.Emails.Receiving.list({"limit": 1})["data"]
    assert (listed["id"], listed["subject"], listed["to"]) == (email_id, "first", [TO])
    assert [found["filename"] for found in listed["attachments"]] == ["plan.png", "tide table.pdf"]
    email: Any = resend.Emails.Receiving.get(email_id)
    assert (email["object"], email["message_id"]) == ("email", "<first@quay.example>")
    assert email["text"] == "See plan\n"
    assert b64encode(PLAN).decode() in email["html"]
    assert email["html_format"] == "data_uri"
    assert (email["bcc"], email["cc"], email["reply_to"]) == ([], [], [])
    assert email["received_for"] == [TO]
    assert email["headers"]["subject"] == "first"
    plain: Any = resend.Emails.Receiving.get(email_id, {"html_format": "cid"})
    assert 'src="cid:plan1"' in plain["html"]
    assert resend.Emails.Receiving.list()["has_more"] is False


def test_attachments(sdk: Server) -> None:
    email_id = received(sdk, "second")
    listed = resend.Emails.Receiving.Attachments.list(email_id)
    plan, table = listed["data"]
    assert (plan["content_disposition"], plan["content_id"], plan["size"]) == ("inline", "plan1", len(PLAN))
    assert "content_id" not in table
    assert fetched(plan["download_url"]) == PLAN
    one: Any = resend.Emails.Receiving.Attachments.get(email_id, table["id"])
    assert (one["object"], one["filename"]) == ("attachment", "tide table.pdf")
    assert fetched(one["download_url"]) == b"%PDF"
    page = resend.Emails.Receiving.Attachments.list(email_id, {"limit": 1, "after": plan["id"]})
    assert [found["id"] for found in page["data"]] == [table["id"]]


def test_without_waiting(sdk: Server) -> None:
    email_id = received(sdk, "third")

    async def read() -> tuple[Any, Any]:
        email = await resend.Emails.Receiving.get_async(email_id)
        return email, await resend.Emails.Receiving.Attachments.list_async(email_id)

    email, attachments = asyncio.run(read())
    assert email["id"] == email_id
    assert [found["id"] for found in attachments["data"]] == [found["id"] for found in email["attachments"]]


def test_unknown_and_malformed_ids(sdk: Server) -> None:
    for email_id in ("0199a3d0-11c2-7f40-8a6e-2b9d7c4e5f10", "nonsense"):
        with pytest.raises(exceptions.ResendError):
            resend.Emails.Receiving.get(email_id)


def test_a_received_mail_is_forwarded_as_it_is_and_answered(sdk: Server) -> None:
    """Section 6: what the helpers of the SDKs do, step by step."""
    email_id = received(sdk, "fourth")
    email: Any = resend.Emails.Receiving.get(email_id, {"html_format": "cid"})
    raw = fetched(email["raw"]["download_url"])
    parsed = message_from_bytes(raw, policy=default)
    attachments = [
        {
            "filename": part.get_filename(),
            "content": b64encode(part.get_payload(decode=True)).decode(),  # type: ignore[arg-type]
            "content_type": part.get_content_type(),
            "content_id": (part["Content-ID"] or "").strip("<>") or None,
        }
        for part in parsed.walk()
        if part.get_filename()
    ]
    passed_on = resend.Emails.send(
        params(
            subject=f"Fwd: {email['subject']}",
            text=email["text"],
            html=email["html"],
            attachments=[{k: v for k, v in found.items() if v is not None} for found in attachments],
        )
    )
    assert passed_on["id"]
    wrapped = {
        "filename": "forwarded_message.eml",
        "content": b64encode(raw).decode(),
        "content_type": "message/rfc822",
    }
    assert resend.Emails.send(params(subject="Fwd", attachments=[wrapped]))["id"]
    headers = {"In-Reply-To": email["message_id"], "References": email["message_id"]}
    assert resend.Emails.send(params(subject="Re: fourth", headers=headers))["id"]
    shared: Any = resend.Emails.share(email_id)
    assert b"fourth" in fetched(shared["url"])
