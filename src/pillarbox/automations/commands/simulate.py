"""`pillarbox automations simulate`: what a run would do for a contact, without doing it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any

import msgspec
import typer

from pillarbox.automations import queries
from pillarbox.automations.commands.automations import Id, group, of_team, says
from pillarbox.automations.graphs.durations import duration
from pillarbox.automations.graphs.graph import Graph, Trigger
from pillarbox.automations.simulation import simulating
from pillarbox.automations.simulation.run import SimulatedEvent, SimulatedRun, SimulationStep
from pillarbox.domains.senders import Senders
from pillarbox.domains.settings import SIMULATOR_DOMAINS
from pillarbox.emails.outgoing import OutgoingEmail
from pillarbox.emails.permitted_senders import PermittedSenders
from pillarbox.emails.settings import verified_domain_required
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.terminal.answers import CommandRefused, Json, perform, say, show_json, show_table, span
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl
from pillarbox.kernel.wire.email_address import EmailAddress, NotAnAddress, email_address
from pillarbox.kernel.wire.problems import Problem
from pillarbox.teams.commands.choosing import TeamOption

__all__ = ["group"]

Contact = Annotated[
    str, typer.Option("--contact", metavar="ADDRESS", help="For whom it would run.", show_default=False)
]
TriggerKey = Annotated[
    str | None,
    typer.Option(
        "--trigger",
        metavar="KEY",
        help="The step that starts it, where there are several.",
        show_default=False,
    ),
]
Payload = Annotated[
    str, typer.Option("--payload", metavar="JSON", help="What comes with the event that starts it.")
]
Then = Annotated[
    list[str] | None,
    typer.Option(
        "--then",
        metavar="TIME:EVENT[JSON]",
        help='Another event of the contact, so long after the first: `2 days: user.paid {"amount": 5}`. '
        "Again for each.",
        show_default=False,
    ),
]
Bodies = Annotated[bool, typer.Option("--bodies", help="Print the text of each mail, else its html.")]


@group.command("simulate")
def simulate(
    automation: Id,
    contact: Contact,
    trigger: TriggerKey = None,
    payload: Payload = "{}",
    then: Then = None,
    bodies: Bodies = False,
    team: TeamOption = None,
    json: Json = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Walk through an automation as it is now for one contact, with a clock that jumps, and print each step
    and each mail. Nothing is sent or written; quotas are not looked at."""

    async def work(connected: CommandDatabase) -> int:
        db, automation_id = await of_team(connected, team, automation)
        found = await queries.get(db, automation_id)
        assert found is not None
        run = await simulated(connected, db, await found.graph(), contact, trigger, payload, then or ())
        if json:
            show_json(_document(run))
        else:
            _print(run, with_bodies=bodies)
        return 0

    perform(work, data=data, database_url=database_url)


async def simulated(
    connected: CommandDatabase,
    db: TeamDb,
    graph: Graph,
    address: str,
    trigger: str | None,
    payload: str,
    then: Sequence[str],
) -> SimulatedRun:
    """Return the run when it is over."""
    clock = SystemClock()
    now, start = clock.now(), _trigger(graph, trigger)
    config = graph.steps[start].config
    assert isinstance(config, Trigger)
    first = await _event(db, now, config.event_name, payload, "--payload")
    events = [await _later(db, now, text) for text in then]
    senders = PermittedSenders(
        Senders(connected.pool, clock),
        frozenset(connected.settings[SIMULATOR_DOMAINS]),
        verified_domain_required(connected.settings),
    )
    return await simulating.simulated(
        db, senders, graph, start, _address(address), Ids(clock).new(), [first, *events]
    )


# What was asked for ------------------------------------------------------------------------------------


def _trigger(graph: Graph, key: str | None) -> int:
    keys = [step.key for step in graph.triggers]
    if key is None and len(keys) == 1:
        return graph.positions[keys[0]]
    if key not in keys:
        what = "It has several triggers" if key is None else f"{key!r} is no trigger of it"
        raise CommandRefused(f"{what}; name one with --trigger: {', '.join(keys)}.")
    return graph.positions[key]


def _address(text: str) -> EmailAddress:
    try:
        return email_address(text)
    except NotAnAddress as wrong:
        raise CommandRefused(f"{text!r} is no address. {wrong.reason}") from None


async def _event(db: TeamDb, now: datetime, name: str, text: str, option: str) -> SimulatedEvent:
    """Return the event with its payload as it would be accepted."""
    try:
        payload = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        raise CommandRefused(f"What is given with {option} is not JSON.") from None
    if not isinstance(payload, dict):
        raise CommandRefused(f"What is given with {option} is not an object.")
    try:
        return await simulating.accepted(db, now, name, payload)
    except Problem as problem:
        raise CommandRefused(problem.message) from None


async def _later(db: TeamDb, now: datetime, text: str) -> SimulatedEvent:
    time, colon, rest = text.partition(":")
    name, brace, payload = rest.partition("{")
    if not colon or not name.strip():
        raise CommandRefused(f"{text!r} is no event with its time. Write `2 days: user.paid`.")
    try:
        length = duration(time, "--then").length
    except Problem as problem:
        raise CommandRefused(problem.message) from None
    return await _event(db, now + length, name.strip(), brace + payload or "{}", "--then")


# What is printed ---------------------------------------------------------------------------------------


def _print(run: SimulatedRun, *, with_bodies: bool) -> None:
    contact = run.contact
    say(f"Contact  {contact.email}{' (the event would make it)' if contact.is_new else ''}")
    say(f"Event    {run.event.name}")
    say(f"Result   {run.status}{_after(run)}")
    say()
    rows = [(_offset(run, one.at), *_words(run.graph, one)) for one in run.happened]
    show_table(("After", "Step", "Type", "Status", "Details"), rows)
    unreached = [step.key for step in run.graph.steps if step.position not in run.steps]
    if unreached:
        say()
        say(f"Not reached: {', '.join(unreached)}")
    for number, (one, mail) in enumerate(_mails(run), start=1):
        say()
        say(f"Mail {number}, after {_offset(run, one.at)}")
        say(f"From     {mail.sender_text}")
        say(f"To       {', '.join(mail.to_texts)}")
        say(f"Subject  {mail.subject}")
        if with_bodies:
            say()
            for line in (mail.text or mail.html or "").splitlines():
                say(line)


def _after(run: SimulatedRun) -> str:
    return "" if run.ended_at is None else f" after {_offset(run, run.ended_at)}"


def _offset(run: SimulatedRun, instant: datetime) -> str:
    return span(instant - run.event.at + timedelta(microseconds=1))


def _words(graph: Graph, simulation_step: SimulationStep) -> tuple[str, str, str, str]:
    """Return the step, its type, its status and its details."""
    if simulation_step.position is None:
        return "-", "event", simulation_step.status, simulation_step.event or ""
    step = graph.steps[simulation_step.position]
    details = says(graph, simulation_step.position)
    if simulation_step.error is not None:
        details = f"{simulation_step.error.name}: {simulation_step.error.message}"
    elif simulation_step.mail is not None:
        details = simulation_step.mail.subject
    elif simulation_step.output is not None:
        details = ", ".join(_output(name, value) for name, value in simulation_step.output.items())
    return step.key, step.type, simulation_step.status, details


def _output(name: str, value: Any) -> str:
    return str(value) if name == "outcome" else "met" if value else "not met"


def _mails(run: SimulatedRun) -> list[tuple[SimulationStep, OutgoingEmail]]:
    return [(one, one.mail) for one in run.happened if one.mail is not None]


def _document(run: SimulatedRun) -> Mapping[str, Any]:
    return {
        "object": "simulation",
        "contact": {"id": run.contact.id, "email": run.contact.email, "is_new": run.contact.is_new},
        "event": run.event.name,
        "status": run.status,
        "completed_at": run.ended_at,
        "happened": [_shown(run, one) for one in run.happened],
        "steps": [
            {"key": step.key, "type": step.type, "status": status}
            for step, status in zip(run.graph.steps, run.statuses(), strict=True)
        ],
        "emails": [
            {
                "key": _key(run.graph, one),
                "at": one.at,
                "from": mail.sender_text,
                "to": list(mail.to_texts),
                "subject": mail.subject,
                "html": mail.html,
                "text": mail.text,
            }
            for one, mail in _mails(run)
        ],
    }


def _key(graph: Graph, simulation_step: SimulationStep) -> str | None:
    return None if simulation_step.position is None else graph.steps[simulation_step.position].key


def _shown(run: SimulatedRun, simulation_step: SimulationStep) -> Mapping[str, Any]:
    return {
        "at": simulation_step.at,
        "after_seconds": (simulation_step.at - run.event.at).total_seconds(),
        "key": _key(run.graph, simulation_step),
        "event": simulation_step.event,
        "status": simulation_step.status,
        "output": simulation_step.output,
        "error": None if simulation_step.error is None else simulation_step.error._asdict(),
        "due_at": simulation_step.due_at,
    }
