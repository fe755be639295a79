"""A real server with SMTP listeners, and what its API says of the mail that came through them.

with peered(folder, database_url, processes="1") as server:
    server.ports["submission"], server.email("a subject")
"""

from __future__ import annotations

import contextlib
import http.client
import json
import smtplib
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kit.process import KEY, PATIENCE, Served

SENDER = "notes@harbor.example"
RECEIVING = "berth.example"


@dataclass(frozen=True)
class Peered:
    """A server, and the ports of its listeners."""

    served: Served
    ports: dict[str, int]

    def api(self, path: str, body: Any = None) -> Any:
        """Return what the API answers to a GET, or to a POST of this body."""
        method, text = ("GET", None) if body is None else ("POST", json.dumps(body))
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
        connection = http.client.HTTPConnection("127.0.0.1", self.ports["http"], timeout=30)
        connection.request(method, path, text, headers)
        with contextlib.closing(connection.getresponse()) as answer:
            assert answer.status < 300, answer.read()
            return json.loads(answer.read())

    def received(self, subject: str) -> dict[str, Any]:
        """Return the received email with that subject, once it is there, and its `octets` as they
        are stored."""
        listed = eventually(
            lambda: [
                one for one in self.api("/emails/receiving?limit=100")["data"] if one["subject"] == subject
            ],
            subject,
        )
        assert len(listed) == 1
        found: dict[str, Any] = self.api(f"/emails/receiving/{listed[0]['id']}")
        at = urlsplit(found["raw"]["download_url"])
        connection = http.client.HTTPConnection("127.0.0.1", self.ports["http"], timeout=30)
        connection.request("GET", at.path)
        with contextlib.closing(connection.getresponse()) as answer:
            return {**found, "octets": answer.read()}

    def email(self, subject: str) -> dict[str, Any]:
        """Return the email with that subject, once it is delivered."""
        return eventually(
            lambda: next(
                (
                    found
                    for found in self.api("/emails?limit=100")["data"]
                    if found["subject"] == subject and found["last_event"] == "delivered"
                ),
                None,
            ),
            subject,
        )

    @property
    def trust(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.served.data / "tls" / "self-made.pem"))
        context.check_hostname = False
        return context


def eventually(claim: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + PATIENCE
    while not (found := claim()):
        assert time.monotonic() < deadline, what
        time.sleep(0.05)
    return found


def ports_of(served: Served) -> dict[str, int]:
    """Return the ports of the ready line."""
    reply = dict(part.split("=", 1) for part in served.out.wait_for("ready").split()[1:])
    plain, tls = reply["submission"].split(",")
    assert tls.startswith("tls://")
    found = {"http": reply["http"], "smtp": reply["smtp"], "submission": plain, "submissions": tls}
    found |= {"lmtp": reply["lmtp"]} if "lmtp" in reply else {}
    return {name: int(at.rpartition(":")[2]) for name, at in found.items()}


LISTENERS = {"smtp": "127.0.0.1:0", "submission": "127.0.0.1:0,tls://127.0.0.1:0", "smtp_client_rate": "off"}


@contextlib.contextmanager
def peered(data: Path, url: str, *, fault: str = "", **settings: str) -> Iterator[Peered]:
    served = Served(data, {"database_url": url, **LISTENERS, **settings}, fault)
    try:
        yield Peered(served, ports_of(served))
    finally:
        served.end()


def submitted(server: Peered, text: bytes) -> str:
    """Return the id of a mail that was accepted."""
    with smtplib.SMTP("127.0.0.1", server.ports["submission"], timeout=30) as client:
        client.starttls(context=server.trust)
        client.login("resend", KEY)
        for line in (f"MAIL FROM:<{SENDER}>", "RCPT TO:<ada@quay.example>"):
            assert client.docmd(line)[0] == 250
        code, reply = client.data(text)
        assert code == 250
        return reply.decode().rpartition(" ")[2]
