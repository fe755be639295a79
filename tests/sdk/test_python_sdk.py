"""The official Python SDK against the real program, over HTTP, with no change but the address and the key."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.parser import BytesParser
from email.policy import default
from pathlib import Path
from typing import Any, TypeVar

import dkim  # type: ignore[import-untyped]
import pytest
import resend
from resend import exceptions

from house.running import PATIENCE, TESTS, Lines
from kit import dkim_verifier
from kit.sink import Message, Sink

T = TypeVar("T")

KEY = "re_SdkTest1_abcdefghijklmnopqrstuvwx"
FINAL = {"delivered", "bounced", "failed"}


@dataclass
class Server:
    """`pillarbox serve` as a process of its own."""

    process: subprocess.Popen[str]
    out: Lines
    log: Lines
    url: str

    def stopped(self) -> int:
        """The exit status after a SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)


@contextmanager
def serving(data: Path, **flags: str) -> Iterator[Server]:
    """A server that is ended with the block, however the block ends."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PILLARBOX_")}
    environment["PYTHONPATH"] = str(TESTS.parent / "src")
    given = {"data": str(data), "http": "127.0.0.1:0", "processes": "2", "rate_limit": "0", "log": "json"}
    given |= {"initial_api_key": KEY, **flags}
    options = [text for name, value in given.items() for text in (f"--{name.replace('_', '-')}", value)]
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "pillarbox", "serve", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    out, log = Lines(process.stdout), Lines(process.stderr)
    try:
        try:
            doors = dict(part.split("=", 1) for part in out.wait_for("ready ").split()[1:])
        except AssertionError:
            raise AssertionError("\n".join(log.all)) from None
        yield Server(process, out, log, f"http://{doors['http']}")
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def sdk_at(url: str) -> Iterator[None]:
    """The SDK set to a server, as its environment variables would do it."""
    before = resend.api_url, resend.api_key
    resend.api_url, resend.api_key = url, KEY
    try:
        yield
    finally:
        resend.api_url, resend.api_key = before


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


def params(**fields: Any) -> Any:
    """What a program gives to `Emails.send`."""
    mail = {
        "from": "Harbor <notes@harbor.example>",
        "to": ["ada@quay.example"],
        "subject": "Berth 12",
        "html": "<p>Ready</p>",
    }
    return {**mail, **{name.rstrip("_"): value for name, value in fields.items()}}


def settled(email_id: str) -> Any:
    """The email once it is final."""
    end = time.monotonic() + PATIENCE
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
    with urllib.request.urlopen(first["download_url"], timeout=PATIENCE) as answer:
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


def test_the_asynchronous_client(sdk: Server) -> None:
    async def talk() -> tuple[str, str]:
        sent = await resend.Emails.send_async(params(subject="Later"))
        found = await resend.Emails.get_async(sent["id"])
        listed = await resend.Emails.list_async({"limit": 1})
        return found["subject"], listed["data"][0]["id"] if found["id"] == listed["data"][0]["id"] else ""

    subject, newest = asyncio.run(talk())
    assert subject == "Later"
    assert newest


# Through a relay ----------------------------------------------------------------------------------


class Smarthost:
    """A sink in a loop of its own, so that the SDK may block the test's thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.sink = self.run(Sink().start())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    def messages(self, count: int) -> list[Message]:
        return self.run(self.sink.messages(count, PATIENCE))

    def close(self) -> None:
        self.run(self.sink.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()


@pytest.fixture
def smarthost() -> Iterator[Smarthost]:
    made = Smarthost()
    yield made
    made.close()


def test_the_mail_arrives_through_a_relay_with_a_valid_signature(
    tmp_path: Path, smarthost: Smarthost
) -> None:
    """DKIM by two independent verifiers, with the record that the API shows; SIGTERM ends with 0.

    The server allows two requests a second, so the SDK is told to wait, and does (conventions section 7).
    """
    route = f"relay:smtp://127.0.0.1:{smarthost.sink.port}"
    settings = {"route": route, "rate_limit": "2", "require_verified_domain": "never"}
    with serving(tmp_path, **settings) as running, sdk_at(running.url):
        domain = patiently(lambda: resend.Domains.create({"name": "harbor.example"}))
        sent = patiently(lambda: resend.Emails.send(params(bcc="c@quay.example", text="Grüße\n.\nEnde")))
        [message] = smarthost.messages(1)
        email = _delivered(sent["id"])
        assert message.recipients == ["ada@quay.example", "c@quay.example"]
        assert message.mail_from.endswith("@send.harbor.example")
        mail = BytesParser(policy=default).parsebytes(message.content)
        assert mail["message-id"] == email["message_id"]
        assert mail["bcc"] is None
        body = mail.get_body(("plain",))
        assert body is not None
        assert body.get_content().splitlines() == ["Grüße", ".", "Ende"]
        _signature_holds(message.content, patiently(lambda: resend.Domains.get(domain["id"])))
        limited = _refused_for_pace()
        assert limited.code == 429
        assert limited.headers["ratelimit-limit"] == "2"
        assert int(limited.headers["retry-after"]) >= 1
        assert running.stopped() == 0
    assert len(smarthost.sink.received) == 1


def _signature_holds(content: bytes, domain: Any) -> None:
    [record] = [record for record in domain["records"] if record["record"] == "DKIM"]
    name = f"{record['name']}.harbor.example"
    answers = {name: record["value"]}
    assert dkim.verify(content, dnsfunc=lambda asked, timeout=5: answers.get(_host(asked), "").encode())
    tags = dkim_verifier.verify(content, answers.get)
    assert (tags["d"], tags["c"]) == ("harbor.example", "relaxed/relaxed")
    broken = content.replace(b"Berth 12", b"Berth 13")
    assert not dkim.verify(broken, dnsfunc=lambda asked, timeout=5: answers.get(_host(asked), "").encode())


def _host(asked: bytes | str) -> str:
    return (asked.decode() if isinstance(asked, bytes) else asked).rstrip(".")


def _delivered(email_id: str) -> Any:
    while (email := patiently(lambda: resend.Emails.get(email_id)))["last_event"] != "delivered":
        assert email["last_event"] in ("queued", "sent")
    return email


def patiently(call: Callable[[], T]) -> T:
    """Call again for as long as the server asks to wait, as its `retry-after` says."""
    while True:
        try:
            return call()
        except exceptions.RateLimitError as limited:
            time.sleep(float(limited.headers["retry-after"]))


def _refused_for_pace() -> exceptions.RateLimitError:
    while True:
        try:
            resend.Emails.list()
        except exceptions.RateLimitError as limited:
            return limited


def _until_refused(kind: type[Exception], call: Callable[[], object]) -> None:
    """A deleted key is refused by every process, at the latest one second later (decision 33)."""
    end = time.monotonic() + 1.0
    refusals = 0
    while refusals < 10:
        try:
            call()
        except kind:
            refusals += 1
        else:
            assert time.monotonic() < end
            refusals = 0
