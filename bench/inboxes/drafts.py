"""How soon a draft that is sent is on its way: from the request to the first byte at another mail server.

The server has its defaults and the route `relay`, and nothing else happens. Each draft is made first, and is
sent when the mail of the one before has left; half of them answer a message of a thread.
"""

from __future__ import annotations

import http.client
import json
import time
from typing import Any

from bench.kit import load, tools
from bench.kit.results import Report, at_most
from bench.kit.server import DOMAIN, KEY, Server, serving
from bench.kit.sinks import StampSink, stamp_sink

DRAFTS = 300
DRAFTS_SHORT = 50
PAUSE = 0.05
HEADERS = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}

MAKE_INBOX = """
    INSERT INTO inboxes (team_id, id, name, email_address, domain_id, created_at, updated_at)
    SELECT d.team_id, d.id, 'bench', 'help@' || d.name, d.id, now(), now()
      FROM domains d
     WHERE d.name = $1
    RETURNING id
"""


def measure(report: Report) -> None:
    port = tools.free_port()
    with serving(report, report.folder / "drafts", route=f"relay:smtp://127.0.0.1:{port}") as server:
        server.trust()
        with stamp_sink(port) as sink:
            idle(report, server, sink)


def idle(report: Report, server: Server, sink: StampSink) -> None:
    """One draft at a time."""
    inbox = f"/inboxes/{server.sql(MAKE_INBOX, DOMAIN)[0]['id']}"
    client = server.connection()
    count = DRAFTS_SHORT if report.short else DRAFTS
    sent, answered = [], []
    earlier: dict[str, Any] | None = None
    for number in range(count):
        wanted = {
            "to": "iris@sink.example",
            "subject": f"Order {number}",
            "text": "Refund issued today.\n" * 20,
        }
        if earlier is not None and number % 2:
            wanted |= {"thread_id": earlier["thread_id"], "reply_to_email_id": earlier["email_id"]}
        draft = asked(client, "POST", f"{inbox}/drafts", wanted)
        time.sleep(PAUSE)
        sent.append(time.monotonic())
        earlier = asked(client, "POST", f"{inbox}/drafts/{draft['id']}/send", {})
        answered.append(time.monotonic())
        sink.wait_for(number + 1)
    starts = [arrival.first_byte for arrival in sink.arrivals]
    firsts = milliseconds(sent, starts)
    report.result(
        "draft send → first byte at the sink, idle, p50",
        load.percentile(firsts, 50),
        "ms",
        at_most(15),
        note=f"from the request, not its answer; p99 {load.percentile(firsts, 99):.1f} ms",
    )
    report.result(
        "draft send → its answer, idle, p50", load.percentile(milliseconds(sent, answered), 50), "ms"
    )


def asked(client: http.client.HTTPConnection, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    client.request(method, path, json.dumps(body), HEADERS)
    response = client.getresponse()
    raw = response.read()
    if response.status not in (200, 201):
        raise RuntimeError(f"{response.status} {raw[:300]!r}")
    return dict(json.loads(raw))


def milliseconds(starts: list[float], ends: list[float]) -> list[float]:
    return [(end - start) * 1000 for start, end in zip(starts, ends, strict=True)]
