"""The official command-line client (npm `resend-cli`): every command once, against the real program."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kit.node_packages import command
from kit.official_clients import CLAIMED, FROM, Place, bring_mail, client_server
from kit.served import KEY
from repository.running import TIMEOUT, Lines

if TYPE_CHECKING:
    from conftest import Databases

ENDPOINT = "https://hooks.harbor.example/in"
CONTACT = "iris@customer.example"
ELSEWHERE = {
    "careers apply": "asks for a job at another company",
    "careers list": "shows the jobs of another company",
    "update": "asks GitHub for a newer version",
    **{
        f"{group}open": "opens a browser" for group in ("", "automations ", "broadcasts ", "events ", "logs ")
    },
    "templates open": "opens a browser",
    "docs": "opens a browser",
}
"""Commands that do not ask the server."""


class Cli:
    """The program; remembers which commands ended well."""

    def __init__(self, place: Place, home: Path) -> None:
        self.place = place
        self.home = home
        self.done: set[str] = set()
        self._command = command("resend_cli", "resend")
        self._variables = {
            **place.variables(home),
            "RESEND_TELEMETRY_DISABLED": "1",
            "RESEND_NO_UPDATE_NOTIFIER": "1",
            "RESEND_CREDENTIAL_STORE": "file",
            "XDG_CONFIG_HOME": str(home / "config"),
        }

    def __call__(self, name: str, *arguments: str, text: str | None = None) -> Any:
        """Run a command with --json; return what it printed."""
        ran = subprocess.run(
            [*self._command, *name.split(), *arguments, "--json"],
            input=text,
            stdin=subprocess.DEVNULL if text is None else None,
            env=self._variables,
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert ran.returncode == 0, f"{name}: {ran.stdout[-1500:]}{ran.stderr[-1500:]}"
        self.done.add(name)
        return json.loads(ran.stdout) if ran.stdout.startswith(("{", "[")) else ran.stdout

    def file(self, name: str, content: Any) -> str:
        """Write a file; return its path."""
        path = self.home / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    def listening(self, name: str, *arguments: str) -> subprocess.Popen[str]:
        """Start a command that goes on until it is interrupted."""
        self.done.add(name)
        return subprocess.Popen(
            [*self._command, *name.split(), *arguments],
            env=self._variables,
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def until(question: Callable[[], Any], every: float = 0.2) -> Any:
    """Return the first answer that is true."""
    end = time.monotonic() + TIMEOUT
    while not (found := question()):
        assert time.monotonic() < end
        time.sleep(every)
    return found


def emails(cli: Cli) -> None:
    plan = cli.file("plan.txt", "high at noon")
    content = ("--from", FROM, "--subject", "Berth 12", "--text", "Ready", "--html", "<p>Ready</p>")
    sent = cli(
        "emails send", *content, "--to", "ada@quay.example", "bo@quay.example", "--cc", "cy@quay.example",
        "--reply-to", "r@harbor.example", "--attachment", plan, "--headers", "X-Entity-Ref-ID=1",
        "--tags", "kind=berth", "--idempotency-key", "cli-1",
    )["id"]  # fmt: skip
    assert cli("emails get", sent)["from"] == FROM
    assert len(cli("emails list", "--limit", "1")["data"]) == 1
    [attachment] = cli("emails attachments", sent)["data"]
    assert cli("emails attachment", sent, attachment["id"])["filename"] == "plan.txt"
    assert cli("emails share", sent, "--expires-in", "2h")["url"]
    assert cli("emails metrics", "--dimensions", "period", "--granularity", "daily")["object"] == "metrics"
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    planned = cli("emails send", *content, "--to", "ada@quay.example", "--scheduled-at", later)["id"]
    cli("emails update", planned, "--scheduled-at", "in 2 hours")
    cli("emails cancel", planned)
    mail = {"from": FROM, "to": ["ada@quay.example"], "subject": "Hi", "text": "There"}
    batch = cli(
        "emails batch", "--file", cli.file("batch.json", [mail, mail]), "--batch-validation", "strict"
    )
    assert len(batch if isinstance(batch, list) else batch["data"]) == 2


def received(cli: Cli) -> None:
    listener = cli.listening("emails receiving listen", "--interval", "2", "--json")
    try:
        heard = Lines(listener.stdout)
        # What was there when it began it does not announce.
        until(lambda: bring_mail(cli.place.server, "Heard") or heard.all, every=1.0)
        assert json.loads(heard.all[0])["subject"] == "Heard"
    finally:
        listener.send_signal(signal.SIGINT)
        listener.wait(timeout=30)
    assert cli("emails receiving list", "--limit", "5")["data"]
    assert cli("emails receiving get", cli.place.email_id)["subject"] == "Which berth?"
    [attachment] = cli("emails receiving attachments", cli.place.email_id)["data"]
    assert cli("emails receiving attachment", cli.place.email_id, attachment["id"])["size"] == 4
    cli("emails receiving forward", cli.place.email_id, "--to", "ada@quay.example", "--from", FROM)


def domains(cli: Cli) -> None:
    made = cli(
        "domains create", "--name", "pier.example", "--region", "eu-west-1", "--tls", "enforced",
        "--tracking-subdomain", "links", "--custom-return-path", "bounce", "--sending", "--receiving",
    )["id"]  # fmt: skip
    assert cli("domains get", made)["name"] == "pier.example"
    assert cli("domains list", "--limit", "1")["data"]
    cli("domains update", made, "--tls", "opportunistic", "--open-tracking", "--click-tracking")
    cli("domains verify", made)
    cli("domains delete", made, "--yes")
    claim = cli("domains claim create", "--name", CLAIMED, "--custom-return-path", "bounce")
    assert cli("domains claim get", claim["domain_id"])["status"] == "pending"
    cli("domains claim verify", claim["domain_id"])


def audience(cli: Cli) -> tuple[str, str]:
    segment = cli("segments create", "--name", "Crew")["id"]
    assert cli("segments get", segment)["name"] == "Crew"
    cli("segments list", "--limit", "1")
    cli("segments update", segment, "--name", "Crews")
    topic = cli("topics create", "--name", "Tides", "--default-subscription", "opt_in")["id"]
    assert cli("topics get", topic)["name"] == "Tides"
    cli("topics list")
    cli("topics update", topic, "--description", "Twice a day")
    key = cli("contact-properties create", "--key", "boat", "--type", "string", "--fallback-value", "none")[
        "id"
    ]
    assert cli("contact-properties get", key)["key"] == "boat"
    cli("contact-properties list", "--limit", "1")
    cli("contact-properties update", key, "--fallback-value", "a boat")
    named = ("--first-name", "Iris", "--last-name", "Vale")
    cli(
        "contacts create",
        "--email",
        CONTACT,
        *named,
        "--properties",
        '{"boat":"Gull"}',
        "--segment-id",
        segment,
    )
    assert cli("contacts get", CONTACT)["first_name"] == "Iris"
    cli("contacts list", "--limit", "1")
    assert len(cli("segments contacts", segment)["data"]) == 1
    cli("contacts update", CONTACT, "--no-unsubscribed", "--properties", '{"boat":null}')
    assert len(cli("contacts segments", CONTACT)["data"]) == 1
    cli("contacts remove-segment", CONTACT, segment)
    cli("contacts add-segment", CONTACT, "--segment-id", segment)
    choice = json.dumps([{"id": topic, "subscription": "opt_in"}])
    cli("contacts update-topics", CONTACT, "--topics", choice)
    assert len(cli("contacts topics", CONTACT)["data"]) == 1
    csv = cli.file("crew.csv", "Email,Boat\nkim@customer.example,Tern\n")
    columns = {"email": "Email", "properties": {"boat": {"column": "Boat", "type": "string"}}}
    made = cli(
        "contacts imports create", "--file", csv, "--column-map", json.dumps(columns),
        "--on-conflict", "skip", "--segment-id", segment, "--topics", choice,
    )["id"]  # fmt: skip
    until(lambda: cli("contacts imports get", made)["status"] == "completed")
    assert len(cli("contacts imports list", "--status", "completed")["data"]) == 1
    cli("contacts delete", "kim@customer.example", "--yes")
    cli("contact-properties delete", key, "--yes")
    return segment, topic


def templates(cli: Cli) -> str:
    made: str = cli(
        "templates create", "--name", "Welcome", "--html", "<p>Hi {{{NAME}}}</p>", "--subject", "Hi",
        "--from", FROM, "--reply-to", "r@harbor.example", "--alias", "welcome", "--var", "NAME:string:you",
    )["id"]  # fmt: skip
    assert cli("templates get", "welcome")["id"] == made
    cli("templates list", "--limit", "1")
    cli("templates update", made, "--text", "Hi {{{NAME}}}")
    cli("templates publish", made)
    cli("templates delete", cli("templates duplicate", made)["id"], "--yes")
    cli("emails send", "--from", FROM, "--to", "ada@quay.example", "--template", made, "--var", "NAME=Ada")
    return made


def broadcasts(cli: Cli, segment: str, topic: str) -> None:
    made = cli(
        "broadcasts create", "--from", FROM, "--subject", "News", "--segment-id", segment, "--name", "May",
        "--html", "<p>{{{RESEND_UNSUBSCRIBE_URL}}}</p>", "--preview-text", "Soon", "--topic-id", topic,
    )["id"]  # fmt: skip
    cli("broadcasts update", made, "--name", "News of May")
    assert cli("broadcasts get", made)["name"] == "News of May"
    cli("broadcasts list", "--limit", "1")
    cli("broadcasts send", made, "--scheduled-at", "in 1 hour")
    cli("broadcasts cancel", made)
    copy = cli("broadcasts duplicate", made)["id"]
    cli("broadcasts send", copy)
    until(lambda: cli("broadcasts get", copy)["status"] == "sent")
    assert len(cli("broadcasts recipients", copy, "--type", "sent")["data"]) == 1
    cli("broadcasts clicked-links", copy)
    cli("broadcasts delete", made, "--yes")


def automations(cli: Cli, segment: str, template: str) -> None:
    cli("events create", "--name", "boat.moored", "--schema", '{"berth":"number"}')
    assert cli("events get", "boat.moored")["name"] == "boat.moored"
    cli("events list", "--limit", "1")
    cli("events update", "boat.moored", "--schema", '{"berth":"number","boat":"string"}')
    steps = [
        {"key": "start", "type": "trigger", "config": {"eventName": "boat.moored"}},
        {"key": "mail", "type": "send_email", "config": {"template": {"id": template}, "from": FROM}},
        {"key": "crew", "type": "add_to_segment", "config": {"segmentId": segment}},
        {"key": "pause", "type": "delay", "config": {"duration": "1 hour"}},
    ]
    connections = [{"from": one["key"], "to": other["key"]} for one, other in pairwise(steps)]
    wanted = {"name": "Moored", "status": "enabled", "steps": steps, "connections": connections}
    made = cli("automations create", "--file", cli.file("automation.json", wanted))["id"]
    assert cli("automations get", made)["status"] == "enabled"
    cli("automations list", "--limit", "1")
    cli("events send", "--event", "boat.moored", "--email", CONTACT, "--payload", '{"berth":4}')
    [run] = until(lambda: cli("automations runs list", made)["data"])
    assert cli("automations runs get", "--automation-id", made, "--run-id", run["id"])["id"] == run["id"]
    cli("automations stop", made)
    cli("automations update", made, "--status", "enabled")
    cli("automations delete", cli("automations duplicate", made)["id"], "--yes")
    cli("events create", "--name", "boat.left")
    cli("events delete", "boat.left", "--yes")


def suppressions(cli: Cli) -> None:
    made = cli("suppressions add", "gone@quay.example")["id"]
    assert cli("suppressions get", "gone@quay.example")["id"] == made
    assert len(cli("suppressions list", "--origin", "manual")["data"]) == 1
    cli("suppressions delete", made, "--yes")
    several = cli.file("several.json", ["x@quay.example", "y@quay.example"])
    cli("suppressions batch add", "--file", several)
    cli("suppressions batch remove", "--file", several)


def webhooks(cli: Cli) -> None:
    made = cli("webhooks create", "--endpoint", ENDPOINT, "--events", "email.sent")["id"]
    assert cli("webhooks get", made)["endpoint"] == ENDPOINT
    cli("webhooks list", "--limit", "1")
    cli("webhooks update", made, "--events", "email.sent", "email.delivered", "--status", "enabled")
    cli("emails send", "--from", FROM, "--to", "ada@quay.example", "--subject", "Hi", "--text", "There")
    [event, *_] = until(lambda: cli("webhooks events list", made)["data"])
    assert cli("webhooks events get", made, event["id"])["payload"]
    cli("webhooks events replay", made, event["id"])
    cli("webhooks events attempts", made, event["id"])
    cli("webhooks rotate-signing-secret", made)
    cli("webhooks delete", made, "--yes")
    listener = cli.listening("webhooks listen", "--url", ENDPOINT, "--port", "0", "--events", "email.sent")
    try:
        until(lambda: listener.poll() is not None or cli("webhooks list")["data"])
    finally:
        listener.send_signal(signal.SIGINT)
        said = "".join(listener.communicate(timeout=30))
    assert cli("webhooks list")["data"] == [], said


def account(cli: Cli) -> None:
    made = cli("api-keys create", "--name", "printer", "--permission", "sending_access")["id"]
    cli("api-keys list", "--limit", "1")
    cli("api-keys update", made, "--name", "plotter")
    cli("api-keys delete", made, "--yes")
    [log] = cli("logs list", "--limit", "1")["data"]
    assert cli("logs get", log["id"])["id"] == log["id"]
    assert len(cli("oauth-grants list")["data"]) == 1
    cli("oauth-grants revoke", str(cli.place.grant_id), "--yes")
    assert cli("doctor")["ok"] is True
    assert cli("whoami")["authenticated"] is True
    cli("completion", "bash")


def profiles(cli: Cli) -> None:
    """Where the key is kept; signing in asks the server whether it is a good one."""
    for name, profile in (("login", "one"), ("auth login", "two")):
        assert cli(name, "--key", KEY, "--profile", profile)["success"] is True
    assert len(cli("auth list")["profiles"]) == 2
    cli("auth switch", "one")
    cli("auth rename", "two", "three")
    cli("auth remove", "three")
    cli("auth logout", "--profile", "one")
    cli("login", "--key", KEY)
    cli("logout")


def ends(cli: Cli, segment: str, topic: str) -> None:
    cli("contacts delete", CONTACT, "--yes")
    cli("segments delete", segment, "--yes")
    cli("topics delete", topic, "--yes")


def leaves(node: Any, path: str = "") -> Iterator[str]:
    """Yield the names of all commands below a node of the tree that `commands` prints."""
    for child in node["subcommands"]:
        name = f"{path} {child['name']}".strip()
        if child["subcommands"]:
            yield from leaves(child, name)
        else:
            yield name


@pytest.fixture
def cli(databases: Databases, tmp_path: Path) -> Iterator[Cli]:
    command("resend_cli", "resend")
    url = databases.fresh()
    home = tmp_path / "home"
    home.mkdir()
    with client_server(url, tmp_path / "data") as place:
        yield Cli(place, home)
    databases.drop(url)


@pytest.mark.slow
def test_every_command_of_the_client_is_answered(cli: Cli) -> None:
    emails(cli)
    received(cli)
    domains(cli)
    segment, topic = audience(cli)
    template = templates(cli)
    broadcasts(cli, segment, topic)
    automations(cli, segment, template)
    suppressions(cli)
    webhooks(cli)
    account(cli)
    ends(cli, segment, topic)
    profiles(cli)
    missing = set(leaves(cli("commands"))) - cli.done - set(ELSEWHERE)
    assert sorted(missing) == []
