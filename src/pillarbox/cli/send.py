"""`pillarbox send`: a test mail through the API, followed until its outcome is known."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import ip_network
from itertools import chain, repeat
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec
import typer

import pillarbox
from pillarbox.app import SETTINGS
from pillarbox.delivery.commands.words import reason_in_words
from pillarbox.domains.settings import SIMULATOR_DOMAINS
from pillarbox.kernel.network.fetch_result import FetchError, HttpLimits
from pillarbox.kernel.network.outbound import Outbound
from pillarbox.kernel.process.announcement import local_url
from pillarbox.kernel.settings.settings import ConfigError, Settings, read_settings
from pillarbox.kernel.storage.data_folder import read_note
from pillarbox.kernel.terminal.answers import (
    FAILED,
    WRONG_SETTING,
    CommandRefused,
    Json,
    as_id,
    say,
    show_json,
    stopped,
)
from pillarbox.kernel.terminal.connect import Data
from pillarbox.kernel.wire.instants import parse_instant
from pillarbox.mail.message.address import AddressError, parse_mailbox

KEY_VARIABLES = ("PILLARBOX_API_KEY", "RESEND_API_KEY")
URL_VARIABLES = ("RESEND_API_URL", "RESEND_BASE_URL")
"""The server, as the official SDKs are told: of Python and PHP, of Node.js and Ruby."""

STILL_OPEN = 3

GOOD = frozenset({"delivered", "opened", "clicked", "complained"})
BAD = frozenset({"bounced", "failed", "suppressed", "canceled"})
FINAL = GOOD | BAD

POLLS = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Pauses between two looks; the last one repeats."""

LIMITS = HttpLimits(max_bytes=64 * 1024 * 1024)
EVERYWHERE = (ip_network("0.0.0.0/0"), ip_network("::/0"))
"""The operator has named the server, so it may be on this machine."""

TOO_MANY = 429
NOT_FOR_THIS_KEY = frozenset({401, 403, TOO_MANY})
SLOW_DOWN = 1.0

To = Annotated[
    list[str] | None,
    typer.Option("--to", metavar="ADDRESS", help="Recipient; may be repeated (default: the simulator)."),
]
From = Annotated[
    str | None,
    typer.Option(
        "--from", metavar="ADDRESS", help="Sender (default: the sandbox sender).", show_default=False
    ),
]
Subject = Annotated[str, typer.Option("--subject", metavar="TEXT", help="Subject.")]
Text = Annotated[str, typer.Option("--text", metavar="TEXT", help="Body.")]
Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help=f"The server (default: the one on this data folder) [{', '.join(URL_VARIABLES)}].",
        show_default=False,
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="KEY",
        help=f"API key; better in the environment, where others do not see it [{', '.join(KEY_VARIABLES)}].",
        show_default=False,
    ),
]
Wait = Annotated[
    float,
    typer.Option("--wait", metavar="SECONDS", min=0, help="How long to follow the mail; 0: not at all."),
]


def command(
    to: To = None,
    sender: From = None,
    subject: Subject = "Test mail from Pillarbox",
    text: Text = "This mail was sent with `pillarbox send`.",
    url: Url = None,
    key: Key = None,
    wait: Wait = 30.0,
    json: Json = False,
    data: Data = None,
) -> None:
    """Send a test mail through the running server and follow what becomes of it.

    Status 0: every recipient got it (or --wait 0); 1: refused or ended otherwise; 3: still on its way.
    """
    try:
        server, names = reachable(url, data)
        mail = mail_of(to, sender, subject, text, names)
        outcome = asyncio.run(send(server, token_of(key), mail, wait, quiet=json))
    except ConfigError as problem:
        raise stopped(str(problem), WRONG_SETTING) from None
    except CommandRefused as problem:
        raise stopped(str(problem)) from None
    if json:
        show_json(outcome.shape())
    else:
        say(outcome.verdict())
    raise typer.Exit(outcome.status())


@dataclass(slots=True)
class SendOutcome:
    """The events of the mail so far, and the last state of each recipient."""

    email_id: str
    recipients: int
    events: list[dict[str, Any]] = field(default_factory=list)
    states: dict[str, str] = field(default_factory=dict)
    followed: bool = True

    def learn(self, events: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Take in the whole history again; gives what is new."""
        for event in events[len(self.events) :]:
            self.events.append(event)
            if event["recipient"] is not None:
                self.states[event["recipient"]] = event["event"]
            yield event

    @property
    def is_final(self) -> bool:
        ended = [state for state in self.states.values() if state in FINAL]
        return len(ended) >= self.recipients

    def verdict(self) -> str:
        if not self.followed:
            return "Accepted; what becomes of it was not followed."
        if not self.is_final:
            return f"Still on its way: `pillarbox emails show {self.email_id}` tells more."
        bad = sum(state in BAD for state in self.states.values())
        if not bad:
            return "Delivered."
        return "Not delivered." if bad == self.recipients else "Delivered to some recipients only."

    def status(self) -> int:
        if not self.followed:
            return 0
        if not self.is_final:
            return STILL_OPEN
        return FAILED if any(state in BAD for state in self.states.values()) else 0

    def shape(self) -> dict[str, Any]:
        return {
            "object": "email",
            "id": self.email_id,
            "final": self.is_final,
            "recipients": self.states,
            "events": self.events,
        }


def reachable(url: str | None, data: str | None) -> tuple[str, Sequence[str]]:
    """Return the server's URL and the simulator domains of these settings."""
    environment = {name: text for name, text in os.environ.items() if name not in KEY_VARIABLES}
    settings = read_settings(SETTINGS, {"data": data}, environment)
    chosen = chosen_url(url, data) or local_server(settings)
    return chosen.rstrip("/"), settings[SIMULATOR_DOMAINS]


def chosen_url(url: str | None, data: str | None, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the server that was named: by the option, else, unless a data folder was, by a variable of the
    SDKs."""
    named = [("--url", url)]
    if data is None:
        named += [(name, environment.get(name)) for name in URL_VARIABLES]
    for source, text in named:
        if text:
            return checked_url(source, text)
    return None


def checked_url(source: str, text: str) -> str:
    try:
        parts = urlsplit(text)
        if parts.scheme in ("http", "https") and parts.hostname and (parts.port or 1) > 0:
            return text
    except ValueError:
        pass
    raise ConfigError(f"{source}: {text!r} is not a URL such as https://mail.example.com.")


def local_server(settings: Settings) -> str:
    """Return the address at which the server of this data folder says it is, else the one of these
    settings."""
    note = read_note(settings.data)
    return note["http"] if note is not None and note["http"] else local_url(settings)


def token_of(key: str | None, environment: Mapping[str, str] = os.environ) -> str:
    """Return the API key, which is never shown."""
    for found in (key, *(environment.get(name) for name in KEY_VARIABLES)):
        if found:
            return found
    raise CommandRefused(f"An API key is needed: set {KEY_VARIABLES[0]}, or use --key.")


def mail_of(
    to: Sequence[str] | None, sender: str | None, subject: str, text: str, simulators: Sequence[str]
) -> dict[str, Any]:
    """Return the send request, with the simulator's addresses where none were given."""
    if (not to or sender is None) and not simulators:
        raise CommandRefused("There is no simulator domain; use --from and --to.")
    return {
        "from": sender if sender is not None else f"onboarding@{simulators[0]}",
        "to": list(to) if to else [f"delivered@{simulators[0]}"],
        "subject": subject,
        "text": text,
    }


async def send(server: str, token: str, mail: dict[str, Any], wait: float, *, quiet: bool) -> SendOutcome:
    """Hand in the mail, then follow it for `wait` seconds."""
    api = ApiClient(server, token)
    answer = await api.call("POST", "/emails", mail)
    outcome = SendOutcome(str(as_id(str(answer.get("id")), "an email")), different(mail["to"]))
    if not quiet:
        say(f"Accepted: email {outcome.email_id}, from {mail['from']} to {', '.join(mail['to'])}.")
    if wait:
        await follow(api, outcome, wait, quiet=quiet)
    else:
        outcome.followed = False
    return outcome


async def follow(api: ApiClient, outcome: SendOutcome, wait: float, *, quiet: bool) -> None:
    """Print each step as it becomes known, until all recipients have a final state or the time is over."""
    loop = asyncio.get_running_loop()
    until = loop.time() + wait
    for pause in chain(POLLS, repeat(POLLS[-1])):
        try:
            answer = await api.call("GET", f"/emails/{outcome.email_id}/events")
        except NotAllowed as refusal:
            if refusal.status == TOO_MANY:
                await asyncio.sleep(SLOW_DOWN)
                continue
            outcome.followed = False
            return
        for event in outcome.learn(answer["data"]):
            if not quiet:
                say(step(event, first=outcome.events[0]))
        if outcome.is_final or loop.time() + pause > until:
            return
        await asyncio.sleep(pause)


class NotAllowed(CommandRefused):
    """The server knows what was asked but does not do it for this key, or not now."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"The server refused with {status}: {reason}")
        self.status = status


class ApiClient:
    """Calls the API of one server with one key."""

    def __init__(self, server: str, token: str) -> None:
        self._server = server
        self._outbound = Outbound(allow=EVERYWHERE)
        self._headers = {
            "Authorization": f"Bearer {token}",
            "User-Agent": f"pillarbox/{pillarbox.__version__}",
            "Content-Type": "application/json",
        }

    async def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the answer to one request; raises CommandRefused."""
        sent = b"" if body is None else msgspec.json.encode(body)
        try:
            reply = await self._outbound.fetch(
                method, self._server + path, LIMITS, headers=self._headers, body=sent
            )
            answer = msgspec.json.decode(reply.body)
        except FetchError as failure:
            raise CommandRefused(f"The server at {self._server} cannot be reached: {failure}") from None
        except msgspec.DecodeError:
            raise CommandRefused(f"What answers at {self._server} is no Pillarbox.") from None
        if reply.status < 300 and isinstance(answer, dict):
            return answer
        message = str(answer.get("message", "")) if isinstance(answer, dict) else ""
        if reply.status in NOT_FOR_THIS_KEY:
            raise NotAllowed(reply.status, message)
        raise CommandRefused(f"The server refused with {reply.status}: {message}")


def different(addresses: Sequence[str]) -> int:
    """Return how many different recipients these addresses are."""
    try:
        return len({parse_mailbox(text).key for text in addresses})
    except AddressError:
        return len(set(addresses))


def step(event: dict[str, Any], *, first: dict[str, Any]) -> str:
    """Return one line: seconds since acceptance, event, recipient, host, answer, next attempt."""
    after = (when(event) - when(first)).total_seconds()
    reason = event["reply"] or reason_in_words(event["reason"])
    parts = [f"{after:8.3f} s", f"{event['event']:<16}", event["recipient"] or "(all)"]
    if event["host"]:
        parts.append(f"by {event['host']}")
    if reason:
        parts.append(f"- {reason}")
    if event["next_attempt_at"]:
        parts.append(f"- next attempt {event['next_attempt_at']}")
    return " ".join(parts)


def when(event: dict[str, Any]) -> datetime:
    return parse_instant(event["created_at"])
