"""`pillarbox webhooks`: watch the events of a team, hand them to a program here, and try one out."""

from __future__ import annotations

import asyncio
import json
import signal
from ipaddress import ip_network
from typing import Annotated, Any

import typer

from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.ids import Ids, tagged
from pillarbox.kernel.network.outbound import Outbound
from pillarbox.kernel.network.web_address import BadUrl, parse_url
from pillarbox.kernel.postgres.database import transaction
from pillarbox.kernel.postgres.notify import notify_processes
from pillarbox.kernel.terminal.answers import CommandRefused, Json, clean, perform, say
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl
from pillarbox.kernel.terminal.program import running_program
from pillarbox.kernel.wire.instants import iso_style
from pillarbox.teams.commands.choosing import TeamOption, one_team
from pillarbox.webhooks.dispatch.deliveries import EVENT_PREFIX
from pillarbox.webhooks.dispatch.posting import Poster
from pillarbox.webhooks.endpoints import EndpointRules
from pillarbox.webhooks.kinds import KINDS
from pillarbox.webhooks.listening import queries
from pillarbox.webhooks.listening.listener import ReceivedEvent, WebhookListener, listen
from pillarbox.webhooks.publish import Publisher, WebhookEvent
from pillarbox.webhooks.samples import SAMPLES

group = typer.Typer(no_args_is_help=True, help="Watch events, forward them to a program here, try one out.")

EVERYWHERE = (ip_network("0.0.0.0/0"), ip_network("::/0"))
"""Where events are forwarded is the operator's own choice."""

LOOK_EVERY = 0.3

Forward = Annotated[
    str | None,
    typer.Option(
        "--forward", metavar="URL", help="Post each event, signed, to this URL.", show_default=False
    ),
]
Events = Annotated[
    list[str] | None,
    typer.Option("--event", metavar="KIND", help="Only this kind; may be repeated.", show_default=False),
]
Kind = Annotated[str, typer.Argument(metavar="KIND", help="For example domain.updated.")]


@group.command("listen")
def listen_here(
    forward: Forward = None,
    event: Events = None,
    team: TeamOption = None,
    json: Json = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Print the events of a team as they happen, until interrupted."""
    perform(
        lambda connected: follow(connected, team, event or list(KINDS), forward, as_json=json),
        data=data,
        database_url=database_url,
    )


@group.command("trigger")
def trigger_one(
    kind: Kind, team: TeamOption = None, data: Data = None, database_url: DatabaseUrl = None
) -> None:
    """Publish a sample event to the team's webhooks that want its kind."""
    perform(lambda connected: trigger(connected, team, kind), data=data, database_url=database_url)


async def follow(
    connected: CommandDatabase, team: str | None, kinds: list[str], forward: str | None, *, as_json: bool
) -> int:
    for kind in kinds:
        known(kind)
    if forward is not None:
        may_be_called(forward)
    owner = await one_team(connected, team)
    from pillarbox.webhooks.plugin import bodies_of

    clock = SystemClock()
    ids, ring = Ids(clock), connected.key_ring()
    bodies = bodies_of(running_program().slices())
    listener = await listen(connected.pool, owner.id, kinds, clock=clock, ids=ids, ring=ring, bodies=bodies)
    say(f"Listening to the events of {owner.name}. Signing secret: {listener.secret}")
    outbound = Outbound(allow=EVERYWHERE)
    try:
        printer = EventPrinter(
            listener, Poster(outbound, EndpointRules(True, None, EVERYWHERE)), forward, as_json=as_json
        )
        await until_interrupted(printer.forever())
    finally:
        await listener.close(ids)
        await outbound.close()
    return 0


class EventPrinter:
    """Prints and forwards the events of a listener."""

    def __init__(
        self, listener: WebhookListener, poster: Poster, forward: str | None, *, as_json: bool
    ) -> None:
        self._listener = listener
        self._poster = poster
        self._forward = forward
        self._as_json = as_json

    async def forever(self) -> None:
        while True:
            for received in await self._listener.take():
                self._print(received)
                if self._forward is not None:
                    await self._forward_event(received, self._forward)
            await asyncio.sleep(LOOK_EVERY)

    def _print(self, received: ReceivedEvent) -> None:
        event = tagged(EVENT_PREFIX, received.event_id)
        if self._as_json:
            typer.echo(json.dumps({"id": event, **json.loads(received.body)}, ensure_ascii=False))
            return
        say(f"{iso_style(received.at)}  {received.kind}  {event}")
        say(f"  {json.dumps(json.loads(received.body)['data'], ensure_ascii=False)}")

    async def _forward_event(self, received: ReceivedEvent, url: str) -> None:
        delivery, endpoint = self._listener.delivery(received, url)
        answer = await self._poster.attempt(delivery, endpoint, SystemClock().now())
        said = str(answer.code) if answer.code else clean(answer.response)
        typer.echo(f"  → {clean(url)}: {said}", err=self._as_json)


async def until_interrupted(work: Any) -> None:
    """Do it until Ctrl-C or SIGTERM; whatever breaks it is raised."""
    task, loop = asyncio.ensure_future(work), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        if not task.cancelled():
            raise


async def trigger(connected: CommandDatabase, team: str | None, kind: str) -> int:
    from pillarbox.webhooks.plugin import CHANNEL

    owner = await one_team(connected, team)
    ids = Ids(SystemClock())
    async with transaction(connected.pool) as conn:
        await Publisher(ids).publish(
            conn, [WebhookEvent(owner.id, known(kind), ids.now(), dict(SAMPLES[kind]))]
        )
        wanted = await queries.subscribers(conn, owner.id, kind)
    if not wanted:
        raise CommandRefused(f"No enabled webhook of the team {owner.name!r} wants {kind}.")
    await notify_processes(connected.pool, CHANNEL)
    say(f"A sample of {kind} is on its way to {wanted} webhook{'s' if wanted > 1 else ''}.")
    return 0


def known(kind: str) -> str:
    if kind not in KINDS:
        raise CommandRefused(f"There is no event {kind!r}; there are {', '.join(KINDS)}.")
    return kind


def may_be_called(url: str) -> None:
    try:
        parse_url(url)
    except BadUrl:
        raise CommandRefused(f"{url!r} is not an http or https URL.") from None
