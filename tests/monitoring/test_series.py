"""A server that sends, bounces, receives and posts shows every metric, and Prometheus answers every panel of
the dashboard (OPS-06).
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import smtplib
import ssl
import urllib.request
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from kit.dns_server import DnsServer
from kit.http_client import http_client
from kit.metrics_table import documented, shown, with_samples
from kit.monitoring import alerts, queries
from kit.process import KEY, Served, served
from kit.prometheus import Prometheus, prometheus
from kit.receiver import WEBHOOKS, Receiver, receiver, status
from kit.smtp_sink import USUAL, Sink

pytestmark = pytest.mark.sweep

PATIENCE = 60.0
POLL = 0.2
LARGE = 300 * 1024
ZONE = """
    quay.example          MX   10 mx.quay.example
    full.example          MX   10 mx.quay.example
    mx.quay.example       A    127.0.0.1
    _mta-sts.quay.example TXT  "v=STSv1; id=20260101T000000;"
    mta-sts.quay.example  A    127.0.0.1
"""
REPORT = "From: quay.example postmaster <postmaster@quay.example>\r\nSubject: Hello\r\n\r\nNo report.\r\n"

AGE = """
    UPDATE deliveries SET first_attempt_at = now() - interval '1 hour' WHERE destination = 'full.example'
"""


@dataclass
class Station:
    """A server with its neighbours: those that it sends to, and one that posts to it."""

    served: Served
    listeners: dict[str, str]
    sink: Sink
    hooks: Receiver

    def page(self) -> str:
        with urllib.request.urlopen(f"http://{self.listeners['metrics']}/metrics", timeout=10) as answer:
            text: str = answer.read().decode()
            return text

    async def work(self) -> None:
        """Send by API and SMTP, to who takes it, who refuses and who is full; receive a report."""
        arrived, posted = len(self.sink.received), len(self.hooks.arrivals)
        async with http_client(f"http://{self.listeners['http']}", token=KEY) as client:
            for to in ("ada@quay.example", "gone@quay.example", "bo@full.example"):
                answer = await client.post("/emails", json=mail(to))
                assert answer.status_code == 200, answer.text
            answer = await client.post("/emails", json=mail("cleo@quay.example", attachments=[attachment()]))
            assert answer.status_code == 200, answer.text
            made = await client.post("/automations", json=AUTOMATION)
            assert made.status_code == 201, made.text
            happened = {"event": "user.signed_up", "email": "ada@quay.example"}
            assert (await client.post("/events/send", json=happened)).status_code == 202
            assert (await client.get("/health")).status_code == 200
            assert (await client.get("/emails/no-id")).status_code >= 400
            runs = f"/automations/{made.json()['id']}/runs?status=completed"
            async with asyncio.timeout(PATIENCE):
                while not (await client.get(runs)).json()["data"]:
                    await asyncio.sleep(POLL)
        await asyncio.to_thread(self._by_smtp)
        await self.sink.messages(arrived + 3, PATIENCE)
        await self.hooks.wait_for(posted + 1, PATIENCE)

    def _by_smtp(self) -> None:
        """A program that submits, and another server that sends what is no report to the feedback address."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with smtplib.SMTP(*address(self.listeners["submission"])) as program:
            program.starttls(context=context)
            program.login("pillarbox", KEY)
            program.sendmail("notes@harbor.example", ["dot@quay.example"], SUBMITTED)
        with smtplib.SMTP(*address(self.listeners["smtp"])) as other:
            other.sendmail("postmaster@quay.example", ["fbl@mx.pillar.example"], REPORT)

    async def age(self) -> None:
        """What waits has waited for an hour."""
        conn = await asyncpg.connect(self.served.database_url)
        try:
            while await conn.execute(AGE) == "UPDATE 0":
                await asyncio.sleep(POLL)
            await conn.execute(BACKED_UP)
        finally:
            await conn.close()


AUTOMATION = {
    "name": "Berths",
    "status": "enabled",
    "steps": [
        {"key": "start", "type": "trigger", "config": {"event_name": "user.signed_up"}},
        {"key": "pause", "type": "delay", "config": {"duration": "1 second"}},
    ],
    "connections": [{"from": "start", "to": "pause"}],
}

BACKED_UP = """
    INSERT INTO backups (name, target, snapshot_at, finished_at, octets)
    VALUES ('one', '/backup', now() - interval '1 hour', now(), 1)
"""

SUBMITTED = "From: notes@harbor.example\r\nTo: dot@quay.example\r\nSubject: Berth 7\r\n\r\nReady.\r\n"


def address(listener: str) -> tuple[str, int]:
    host, _, port = listener.rpartition(":")
    return host, int(port)


def attachment() -> dict[str, str]:
    return {"filename": "plan.bin", "content": base64.b64encode(b"x" * LARGE).decode()}


def mail(to: str, **fields: Any) -> dict[str, Any]:
    return {"from": "notes@harbor.example", "to": [to], "subject": "Berth 7", "text": "Ready."} | fields


def answered(session: Any, argument: str) -> object:
    """What the recipients' server says: it depends on the mailbox."""
    if "gone@" in argument:
        return "550 5.1.1 no such user"
    return "451 4.2.2 mailbox full" if "@full" in argument else USUAL


@contextlib.asynccontextmanager
async def station(folder: Path) -> AsyncIterator[Station]:
    async with DnsServer(ZONE) as dns, Sink() as sink, receiver() as hooks:
        sink.script("RCPT", then=answered)
        hooks.answers(status(200))
        settings = {
            "metrics": "127.0.0.1:0",
            "smtp": "127.0.0.1:0",
            "submission": "127.0.0.1:0",
            "route": "direct",
            "dns": f"127.0.0.1:{dns.port}",
            "remote_smtp_port": str(sink.port),
            **WEBHOOKS,
        }
        with contextlib.ExitStack() as running:
            server = await asyncio.to_thread(running.enter_context, served(folder / "data", **settings))
            line = server.out.wait_for("ready ")
            listeners = dict(part.split("=", 1) for part in line.split()[1:])
            here = Station(server, listeners, sink, hooks)
            await subscribe(here)
            yield here
            await asyncio.to_thread(running.close)


async def subscribe(here: Station) -> None:
    async with http_client(f"http://{here.listeners['http']}", token=KEY) as client:
        answer = await client.post(
            "/webhooks", json={"endpoint": here.hooks.url, "events": ["email.delivered"]}
        )
        assert answer.status_code in (200, 201), answer.text


async def until(holds: Callable[[], object], otherwise: Callable[[], object]) -> None:
    """Return when `holds()` is true; `otherwise()` is what is said where it never is."""
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while not await asyncio.to_thread(holds):
        assert asyncio.get_running_loop().time() < deadline, otherwise()
        await asyncio.sleep(POLL)


async def test_a_server_at_work_shows_every_metric_of_the_guide(tmp_path: Path) -> None:
    """OPS-06: and no address, key or text."""
    async with station(tmp_path) as here:
        await here.work()
        await here.age()
        wanted = documented()

        def lacks() -> set[str]:
            page = here.page()
            found, samples = shown(page), with_samples(page)
            bare = {name for name in wanted if not any(one.startswith(name) for one in samples)}
            return {name for name in wanted if found.get(name) != wanted[name]} | bare

        await until(lambda: not lacks(), lambda: f"not as the guide says: {sorted(lacks())}")
        page = here.page()
        assert {name for name in shown(page) if name.startswith("pillarbox_")} == wanted.keys()
        for secret in ("ada", "gone", "notes", "Berth", KEY, "harbor.example", "quay.example"):
            assert secret not in page
        # The domain of who waits is there, and says nothing of whose mail it is.
        assert 'pillarbox_queue_destination_items{destination="full.example"}' in page


@pytest.mark.slow
async def test_prometheus_answers_every_panel_with_data(tmp_path: Path) -> None:
    async with station(tmp_path) as here:
        with prometheus(here.listeners["metrics"]) as found:
            await here.work()
            await here.age()
            await until(
                lambda: found.values("sum(pillarbox_webhook_lag_seconds_count) > 0"), lambda: "no data"
            )
            # A rate needs two looks with work between them.
            await here.work()
            empty = await unanswered(found)
            assert empty == [], "panels without data"
            rules = await asyncio.to_thread(found.rules)
            assert [rule["name"] for rule in rules if rule["health"] == "err"] == []
            assert len(rules) == len(alerts())
            firing = [rule["name"] for rule in rules if rule["state"] == "firing"]
            assert firing == []


async def unanswered(found: Prometheus) -> list[tuple[str, str]]:
    """The queries that never had a number."""
    left = list(queries())
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while left and asyncio.get_running_loop().time() < deadline:
        left = [(title, query) for title, query in left if not await asyncio.to_thread(found.values, query)]
        await asyncio.sleep(POLL)
    return left
