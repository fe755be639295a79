"""The official Python SDK's domain methods, claims between two teams included."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import resend
from resend import exceptions
from typer.testing import CliRunner

from kit.dns_server import DnsServer
from kit.served import Server, sdk_at, serving
from pillarbox.cli import program
from repository.running import TIMEOUT


@contextmanager
def dns_running() -> Iterator[DnsServer]:
    """A DNS server beside the test, which itself does not run in a loop."""
    loop, server = asyncio.new_event_loop(), DnsServer()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(TIMEOUT)
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.__aexit__(None, None, None), loop).result(TIMEOUT)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(TIMEOUT)
        loop.close()


class Place:
    """A server, its data folder and the DNS that it asks."""

    def __init__(self, server: Server, folder: Path, dns: DnsServer) -> None:
        self.server = server
        self.dns = dns
        self._folder = folder

    def command(self, *arguments: str) -> Any:
        """What a command of the operator prints as JSON."""
        done = CliRunner().invoke(program(), [*arguments, "--data", str(self._folder)])
        assert done.exit_code == 0, done.output + done.stderr
        return json.loads(done.stdout) if "--json" in arguments else done.stdout


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("sdk-domains")
    settings = {"claim_grace": "off", "claim_quiet": "off", "hostname": "mx.pillar.example", "processes": "1"}
    with dns_running() as dns, serving(folder, dns=f"127.0.0.1:{dns.port}", **settings) as server:
        yield Place(server, folder, dns)
        assert server.stopped() == 0


@pytest.fixture
def sdk(place: Place) -> Iterator[Place]:
    with sdk_at(place.server.url):
        yield place


def test_create_get_list_update_remove(sdk: Place) -> None:
    made = resend.Domains.create(
        {
            "name": "Harbor.example",
            "region": "eu-west-1",
            "tracking_subdomain": "links",
            "open_tracking": True,
        }
    )
    assert (made["name"], made["status"], made["region"]) == ("harbor.example", "not_started", "eu-west-1")
    assert [record["record"] for record in made["records"] or []] == ["SPF", "SPF", "DKIM", "Tracking"]
    found: Any = resend.Domains.get(made["id"])
    assert {name: found[name] for name in ("id", "name", "records")} == {
        name: made[name] for name in ("id", "name", "records")
    }
    other = resend.Domains.create({"name": "pier.example"})
    listed = resend.Domains.list({"limit": 1})
    assert ([item["id"] for item in listed["data"]], listed["has_more"]) == ([other["id"]], True)
    older = resend.Domains.list({"limit": 1, "after": other["id"]})
    assert [item["id"] for item in older["data"]] == [made["id"]]
    changed: Any = resend.Domains.update(
        {"id": made["id"], "click_tracking": True, "tls": "enforced", "tracking_subdomain": "go"}
    )
    assert (changed["object"], changed["id"]) == ("domain", made["id"])
    found = resend.Domains.get(made["id"])
    assert (found["click_tracking"], found["tracking_subdomain"]) == (True, "go")
    removed: Any = resend.Domains.remove(made["id"])
    assert (removed["object"], removed["id"], removed["deleted"]) == ("domain", made["id"], True)
    with pytest.raises(exceptions.ResendError, match="Domain not found"):
        resend.Domains.get(made["id"])
    resend.Domains.remove(other["id"])
    assert resend.Domains.list()["data"] == []


def test_verify_answers_at_once(sdk: Place) -> None:
    made = resend.Domains.create({"name": "dock.example"})
    asked: Any = resend.Domains.verify(made["id"])
    assert (asked["object"], asked["id"]) == ("domain", made["id"])
    assert resend.Domains.get(made["id"])["status"] == "pending"
    resend.Domains.remove(made["id"])


def test_errors_are_those_the_sdk_knows(sdk: Place) -> None:
    with pytest.raises(exceptions.MissingRequiredFieldsError, match="Missing `name` field"):
        resend.Domains.create({})  # type: ignore[typeddict-item]
    with pytest.raises(exceptions.ValidationError, match="public suffix"):
        resend.Domains.create({"name": "co.uk"})
    with pytest.raises(exceptions.ResendError, match="valid UUID"):
        resend.Domains.get("nonsense")
    with pytest.raises(exceptions.ValidationError, match="No other team"):
        resend.Domains.Claims.create({"name": "nobody.example"})


def test_a_claim_from_the_first_call_to_the_new_key(sdk: Place) -> None:
    sdk.command("teams", "create", "Owner", "--email", "ola@quay.example")
    sdk.command("domains", "trust", "quay.example", "--create", "--team", "Owner")
    claim = resend.Domains.Claims.create({"name": "quay.example", "custom_return_path": "bounce"})
    assert (claim["object"], claim["status"]) == ("domain_claim", "pending")
    again = resend.Domains.Claims.create({"name": "quay.example", "custom_return_path": "bounce"})
    assert (again["id"], again["record"]) == (claim["id"], claim["record"])
    domain = str(claim["domain_id"])
    assert resend.Domains.get(domain)["records"] == []
    with pytest.raises(exceptions.ResendError, match="claim"):
        resend.Domains.verify(domain)
    sdk.dns.add("quay.example", "TXT", f'"{claim["record"]["value"]}"')
    assert resend.Domains.Claims.verify(domain)["id"] == claim["id"]
    end = time.monotonic() + TIMEOUT
    while (found := resend.Domains.Claims.get(domain))["status"] != "completed":
        assert time.monotonic() < end, found
    records: Any = resend.Domains.get(domain)["records"]
    assert [record["name"] for record in records] == ["bounce", "bounce", "pillarbox._domainkey"]
    listed = sdk.command("domains", "list", "--json")["data"]
    assert [(item["name"], item["id"]) for item in listed] == [("quay.example", domain)]
    resend.Domains.remove(domain)
