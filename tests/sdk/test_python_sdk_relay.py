"""The official Python SDK, and the mail at the other end: through a relay, with a signature that holds."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from email.parser import BytesParser
from email.policy import default
from pathlib import Path
from typing import Any, TypeVar

import dkim  # type: ignore[import-untyped]
import pytest
import resend
from resend import exceptions

from kit import dkim_verifier
from kit.served import params, sdk_at, serving
from kit.smtp_sink import Message, Sink
from repository.running import TIMEOUT

T = TypeVar("T")


class Smarthost:
    """A sink in a loop of its own, so that the SDK may block the test's thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.sink = self.run(Sink().start())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(TIMEOUT)

    def messages(self, count: int) -> list[Message]:
        return self.run(self.sink.messages(count, TIMEOUT))

    def close(self) -> None:
        self.run(self.sink.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(TIMEOUT)
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

    The server allows five requests a second, so the SDK is told to wait, and does (conventions section 7).
    """
    route = f"relay:smtp://127.0.0.1:{smarthost.sink.port}"
    settings = {"route": route, "rate_limit": "5", "require_verified_domain": "never"}
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
        assert limited.headers["ratelimit-limit"] == "5"
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
