"""The official Python SDK against the real program, over HTTP, with no change but the address and the key."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import resend
from resend import exceptions

from kit.served import KEY, Server, params, sdk_at, serving
from repository.running import TIMEOUT

FINAL = {"delivered", "bounced", "failed"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for the tests that only talk; its last word must be exit status 0."""
    with serving(tmp_path_factory.mktemp("sdk")) as running:
        yield running
        assert running.stopped() == 0


@pytest.fixture
def sdk(server: Server) -> Iterator[Server]:
    with sdk_at(server.url):
        yield server


def settled(email_id: str) -> Any:
    """The email once it is final."""
    end = time.monotonic() + TIMEOUT
    while (email := resend.Emails.get(email_id))["last_event"] not in FINAL:
        assert time.monotonic() < end, email
    return email


def test_send_and_get(sdk: Server) -> None:
    sent = resend.Emails.send(
        params(
            cc="b@quay.example",
            bcc=["c@quay.example"],
            reply_to="d@quay.example",
            headers={"X-Entity-Ref-ID": "1"},
            tags=[{"name": "kind", "value": "berth"}],
        )
    )
    email = settled(sent["id"])
    assert email["id"] == sent["id"]
    assert email["object"] == "email"
    assert (email["to"], email["cc"], email["bcc"]) == (
        ["ada@quay.example"],
        ["b@quay.example"],
        ["c@quay.example"],
    )
    assert email["from"] == "Harbor <notes@harbor.example>"
    assert email["reply_to"] == ["d@quay.example"]
    assert (email["html"], email["text"]) == ("<p>Ready</p>", "Ready")
    assert email["last_event"] == "delivered"
    assert email["tags"] == [{"name": "kind", "value": "berth"}]


def test_the_environment_variables_are_all_it_takes(sdk: Server) -> None:
    """The README's way: RESEND_API_URL and RESEND_API_KEY, and a program that knows nothing of us."""
    program = (
        "import resend\n"
        "sent = resend.Emails.send({'from': 'a@harbor.example', 'to': 'b@quay.example', 'subject': 'Hi',"
        " 'text': 'There'})\n"
        "print(resend.Emails.get(sent['id'])['text'])\n"
    )
    environment = os.environ | {"RESEND_API_URL": sdk.url, "RESEND_API_KEY": KEY}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.returncode) == ("There\n", 0), done.stderr


def test_batches(sdk: Server) -> None:
    strict = resend.Batch.send([params(subject="A"), params(subject="B")])
    assert [resend.Emails.get(item["id"])["subject"] for item in strict["data"]] == ["A", "B"]
    assert "errors" not in strict
    mixed = [params(), params(to="nobody"), params()]
    with pytest.raises(exceptions.ValidationError, match=r"^\[1\] Invalid `to` field\."):
        resend.Batch.send(mixed)
    options: Any = {"batch_validation": "permissive", "idempotency_key": "a batch"}
    first = resend.Batch.send(mixed, options)
    assert len(first["data"]) == 2
    assert [error["index"] for error in first["errors"]] == [1]
    again = resend.Batch.send(mixed, options)
    assert (again["data"], again["errors"]) == (first["data"], first["errors"])
    assert again["http_headers"]["idempotent-replayed"] == "true"


def test_lists_page_by_page(sdk: Server) -> None:
    ids = [item["id"] for item in resend.Batch.send([params() for _ in range(5)])["data"]][::-1]
    first = resend.Emails.list({"limit": 2})
    assert [email["id"] for email in first["data"]] == ids[:2]
    assert (first["object"], first["has_more"]) == ("list", True)
    second = resend.Emails.list({"limit": 2, "after": ids[1]})
    assert [email["id"] for email in second["data"]] == ids[2:4]
    back = resend.Emails.list({"limit": 2, "before": ids[2]})
    assert [email["id"] for email in back["data"]] == ids[:2]
    assert resend.Emails.list()["data"][0]["id"] == ids[0]


def test_reschedule_and_cancel(sdk: Server) -> None:
    at = datetime.now(UTC) + timedelta(hours=1)
    email = resend.Emails.send(params(scheduled_at=at.isoformat()))["id"]
    assert resend.Emails.get(email)["last_event"] == "scheduled"
    later = (at + timedelta(hours=1)).replace(microsecond=0)
    moved = resend.Emails.update({"id": email, "scheduled_at": later.isoformat()})
    assert (moved["object"], moved["id"]) == ("email", email)
    found: Any = resend.Emails.get(email)
    assert datetime.fromisoformat(found["scheduled_at"]) == later
    for _ in range(2):
        assert resend.Emails.cancel(email)["id"] == email
    assert resend.Emails.get(email)["last_event"] == "canceled"
    with pytest.raises(exceptions.ValidationError, match="Only scheduled emails can be rescheduled"):
        resend.Emails.update({"id": email, "scheduled_at": "in 1 hour"})
    soon = resend.Emails.send(params(scheduled_at="in 1 second"))["id"]
    assert settled(soon)["last_event"] == "delivered"
    with pytest.raises(exceptions.ValidationError, match="Only scheduled emails can be canceled"):
        resend.Emails.cancel(soon)


def test_metrics(sdk: Server) -> None:
    """metrics.md section 8: arrays as the SDK joins them, and its own refusal of forbidden pairs."""
    email = settled(resend.Emails.send(params())["id"])
    found = resend.Emails.metrics(
        {
            "start_date": datetime.now(UTC) - timedelta(hours=1),
            "metrics": ["received", "delivered", "delivery_rate"],
            "dimensions": ["domain", "email"],
            "email_id": [email["id"]],
            "timezone": "Europe/Berlin",
        }  # type: ignore[typeddict-item]
    )
    assert found["object"] == "metrics"
    assert found["totals"] == {"received": 1, "delivered": 1, "delivery_rate": 100.0}
    [row] = found["data"]
    assert (row["email_id"], row["domain_name"], row["delivered"]) == (email["id"], "harbor.example", 1)
    with pytest.raises(ValueError, match="broadcast"):
        resend.Emails.metrics({"dimensions": ["email", "broadcast"]})


def test_logs(sdk: Server) -> None:
    """The SDK takes the log of an error for a log, not for an error: `statusCode` is nested in it."""
    sent = resend.Emails.send(params(html="<p>" + "Ready. " * 20 + "</p>"))
    with pytest.raises(exceptions.ValidationError):
        resend.Emails.send(params(to="nobody"))
    first, second = resend.Logs.list({"limit": 2})["data"]
    assert [(log["method"], log["endpoint"]) for log in (first, second)] == [("POST", "/emails")] * 2
    assert (first["response_status"], second["response_status"]) == (422, 200)
    refused, accepted = resend.Logs.get(first["id"]), resend.Logs.get(second["id"])
    assert refused["response_body"]["statusCode"] == 422
    assert accepted["object"] == "log"
    assert accepted["request_body"]["html"] == "<p>" + "Ready. " * 20 + "</p>"
    assert accepted["response_body"] == {"id": sent["id"]}
    older = resend.Logs.list({"limit": 1, "after": first["id"]})["data"]
    assert [log["id"] for log in older] == [second["id"]]
    assert accepted["user_agent"].startswith("resend-python:")


def test_usage(sdk: Server) -> None:
    before = resend.Usage.get()
    resend.Batch.send([params(), params(cc=["b@quay.example", "c@quay.example"])])
    after = resend.Usage.get()
    assert after["object"] == "usage"
    assert after["emails"]["monthly"]["sent"] == before["emails"]["monthly"]["sent"] + 4
    assert after["emails"]["daily"]["limit"] is None
    assert after["rate_limit"]["duration"] == "1000ms"


def test_share(sdk: Server) -> None:
    email = resend.Emails.send(params())["id"]
    for given in (None, {"expires_in": "1h 30m"}):
        shared = resend.Emails.share(email, given)  # type: ignore[arg-type]
        assert (shared["object"], shared["id"]) == ("email", email)
        assert shared["url"].startswith(f"{sdk.url}/shared?token=")


def test_attachments(sdk: Server) -> None:
    """As a list of bytes (the SDK's own example) and as base64; listed, retrieved, downloaded."""
    data = bytes(range(256))
    email = resend.Emails.send(
        params(
            attachments=[
                {"filename": "map.bin", "content": list(data)},
                {"filename": "hi.txt", "content": "aGk=", "inline_content_id": "hi"},
            ]
        )
    )["id"]
    listed = resend.Emails.Attachments.list(email)
    assert [item["filename"] for item in listed["data"]] == ["map.bin", "hi.txt"]
    assert resend.Emails.Attachments.list(email, {"limit": 1})["has_more"] is True
    first = resend.Emails.Attachments.get(email, listed["data"][0]["id"])
    assert (first["object"], first["size"]) == ("attachment", 256)
    with urllib.request.urlopen(first["download_url"], timeout=TIMEOUT) as answer:
        assert answer.read() == data
    second = resend.Emails.Attachments.get(email, listed["data"][1]["id"])
    assert (second["content_disposition"], second["content_id"]) == ("inline", "hi")


def test_idempotent_sends(sdk: Server) -> None:
    options: Any = {"idempotency_key": "order/4711"}
    first = resend.Emails.send(params(), options)
    again = resend.Emails.send(params(), options)
    assert again["id"] == first["id"]
    assert again["http_headers"]["idempotent-replayed"] == "true"
    with pytest.raises(exceptions.ResendError) as refused:
        resend.Emails.send(params(subject="Other"), options)
    assert (refused.value.code, refused.value.error_type) == (409, "invalid_idempotent_request")


def test_api_keys(sdk: Server) -> None:
    made = resend.ApiKeys.create({"name": "sender", "permission": "sending_access"})
    assert resend.ApiKeys.update({"id": made["id"], "name": "renamed"})["id"] == made["id"]
    names = {key["id"]: key["name"] for key in resend.ApiKeys.list()["data"]}
    assert names[made["id"]] == "renamed"
    resend.api_key = made["token"]
    email = resend.Emails.send(params())["id"]
    with pytest.raises(exceptions.ResendError) as refused:
        resend.Emails.get(email)
    assert (refused.value.code, refused.value.error_type) == (401, "restricted_api_key")
    resend.api_key = KEY
    resend.ApiKeys.remove(made["id"])
    assert made["id"] not in {key["id"] for key in resend.ApiKeys.list()["data"]}
    resend.api_key = made["token"]
    _until_refused(exceptions.InvalidApiKeyError, lambda: resend.Emails.send(params()))


def test_domains(sdk: Server) -> None:
    made: Any = resend.Domains.create({"name": "pier.example"})
    assert {record["record"] for record in made["records"]} == {"SPF", "DKIM"}
    found: Any = resend.Domains.get(made["id"])
    assert (found["object"], found["name"]) == ("domain", "pier.example")
    assert [domain["id"] for domain in resend.Domains.list({"limit": 1})["data"]] == [made["id"]]


def test_errors_are_the_sdks_own_exceptions(sdk: Server) -> None:
    with pytest.raises(exceptions.MissingRequiredFieldsError) as missing:
        resend.Emails.send(params(subject=""))
    assert (missing.value.code, missing.value.message) == (422, "Missing `subject` field.")
    with pytest.raises(exceptions.ValidationError, match="Invalid `from` field"):
        resend.Emails.send(params(from_="nobody"))
    with pytest.raises(exceptions.ResendError) as unknown:
        resend.Emails.get("0199a3c2-6a41-7c02-8f11-5e0d9b7a3c44")
    assert (unknown.value.code, unknown.value.error_type) == (404, "not_found")
    assert unknown.value.message == "Email not found"
    with pytest.raises(exceptions.ResendError) as malformed:
        resend.Emails.get("x")
    assert malformed.value.error_type == "invalid_parameter"
    resend.api_key = "re_unknown1_AAAAAAAAAAAAAAAAAAAAAAAA"
    with pytest.raises(exceptions.InvalidApiKeyError):
        resend.Emails.list()
    resend.api_key = ""
    with pytest.raises(exceptions.MissingApiKeyError):
        resend.Emails.list()


def test_a_base_url_with_a_slash_at_its_end(server: Server) -> None:
    """The SDK puts `/emails` behind it as it is; the log of requests names the endpoint all the same."""
    with sdk_at(f"{server.url}/"):
        sent = resend.Emails.send(params(subject="Slash"))
        assert resend.Emails.get(sent["id"])["subject"] == "Slash"
        later = asyncio.run(resend.Emails.send_async(params(subject="Slash")))
        assert resend.Emails.list({"limit": 1})["data"][0]["id"] == later["id"]
        sends = [row for row in resend.Logs.list()["data"] if row["method"] == "POST"]
        assert [row["endpoint"] for row in sends[:2]] == ["/emails", "/emails"]


def test_the_asynchronous_client(sdk: Server) -> None:
    async def talk() -> tuple[str, str]:
        sent = await resend.Emails.send_async(params(subject="Later"))
        found = await resend.Emails.get_async(sent["id"])
        listed = await resend.Emails.list_async({"limit": 1})
        return found["subject"], listed["data"][0]["id"] if found["id"] == listed["data"][0]["id"] else ""

    subject, newest = asyncio.run(talk())
    assert subject == "Later"
    assert newest


def _until_refused(kind: type[Exception], call: Callable[[], object]) -> None:
    """A deleted key is refused by every process, at the latest one second later (contract decision 33). The
    calls leave room in the limit of refused keys, which is 60 in a minute."""
    end = time.monotonic() + 1.0
    refusals = 0
    while refusals < 10:
        time.sleep(0.05)
        began = time.monotonic()
        try:
            call()
        except kind:
            refusals += 1
        else:
            assert began < end
            refusals = 0
