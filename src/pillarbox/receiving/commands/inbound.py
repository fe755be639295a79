"""`pillarbox inbound`: a message from a file or another mail server, through the pipeline of the SMTP
listener.

    pillarbox inbound --rcpt help@harbor.example < message.eml

The exit statuses are those that mail servers know from programs they pipe mail into (sysexits): 0 stored,
67 an address is not ours, 69 refused, 75 try again later.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Final

import typer

from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.process import shared_memory
from pillarbox.kernel.process.runtime import Runtime
from pillarbox.kernel.settings.kinds import ProcessRole
from pillarbox.kernel.slices import Container, Externals, Pools
from pillarbox.kernel.storage.store_check import refuse_other_store
from pillarbox.kernel.terminal.answers import Json, perform, say, show_json, stopped
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl
from pillarbox.kernel.terminal.program import running_program
from pillarbox.mail.message.address import AddressError, parse_mailbox
from pillarbox.mail.message.transfer_encoding import is_clean
from pillarbox.mail.smtp.intake import ReceivedText
from pillarbox.receiving.addresses import AddressLookup, ForBounces, ForTeam
from pillarbox.receiving.addresses import AddressRefusalReason as NotOurs
from pillarbox.receiving.arrival import AcceptedRecipient, Arrival, ArrivalFate, ArrivalOutcome
from pillarbox.receiving.receive import MOST_OCTETS, MessageReceiver
from pillarbox.receiving.reports.bounce_mail import BounceMail
from pillarbox.receiving.reports.return_path import ReturnPath

NO_USER, UNAVAILABLE, TRY_AGAIN = 67, 69, 75
STATUSES: Final = {
    ArrivalFate.STORED: 0,
    ArrivalFate.REPEATED: 0,
    ArrivalFate.LOOPING: UNAVAILABLE,
    ArrivalFate.FORGED: UNAVAILABLE,
    ArrivalFate.NO_ROOM: TRY_AGAIN,
    ArrivalFate.BUSY: TRY_AGAIN,
    ArrivalFate.TROUBLE: TRY_AGAIN,
}
PROTOCOL: Final = "LMTP"

_MBOX_LINE = re.compile(rb">?From [^\r\n]*\r?\n")

To = Annotated[list[str], typer.Option("--rcpt", metavar="ADDRESS", help="Recipient; may be repeated.")]
From = Annotated[
    str, typer.Option("--from", metavar="ADDRESS", help="Envelope sender (default: none, as of reports).")
]
Client = Annotated[
    str, typer.Option("--client", metavar="IP", help="Who sent it, for SPF (default: nobody is asked).")
]
Helo = Annotated[str, typer.Option("--helo", metavar="NAME", help="The name that this client gave itself.")]


def command(
    rcpt: To,
    sender: From = "",
    client: Client = "",
    helo: Helo = "",
    json: Json = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Receive the message on standard input."""
    raw = with_crlf(sys.stdin.buffer.read(MOST_OCTETS + 1))
    if len(raw) > MOST_OCTETS:
        raise stopped("The message is too big.", UNAVAILABLE)
    if not is_clean(raw):
        raise stopped("The message holds a bare CR, a bare LF or a NUL.", UNAVAILABLE)
    arrival = Arrival(client=client, helo=helo, protocol=PROTOCOL, tls=None, mail_from=sender, recipients=())
    perform(
        lambda connected: receive(connected, rcpt, arrival, raw, json=json),
        data=data,
        database_url=database_url,
        failed=TRY_AGAIN,
    )


async def receive(
    connected: CommandDatabase, rcpt: Sequence[str], arrival: Arrival, raw: bytes, *, json: bool
) -> int:
    """Store the message for all recipients, or for none of them when one is not ours."""
    connected.key_ring()
    async with connected.pool.acquire() as conn:
        await refuse_other_store(conn, connected.settings)
    settings = replace(connected.settings, roles=(ProcessRole.API,))
    memory = shared_memory.create()
    try:
        runtime = Runtime(
            process_id=Ids(SystemClock()).new(), index=0, count=1, shared_memory=memory, capture_token=""
        )
        pools = Pools(connected.pool, connected.pool)
        kit = Container(running_program().slices(), settings, runtime, pools, Externals.real(settings))
        return await receive_message(kit, rcpt, arrival, raw, json=json)
    finally:
        os.close(memory)


async def receive_message(
    kit: Container, rcpt: Sequence[str], arrival: Arrival, raw: bytes, *, json: bool
) -> int:
    teams: list[AcceptedRecipient] = []
    reports: list[ForBounces] = []
    for address in rcpt:
        place = await kit.need(AddressLookup).find(*local_and_domain(address))
        if isinstance(place, NotOurs):
            raise stopped(f"{address}: {place.value}.", TRY_AGAIN if place is NotOurs.FULL else NO_USER)
        if isinstance(place, ForTeam):
            teams.append(AcceptedRecipient(place.team_id, place.address))
        else:
            reports.append(place)
    now = kit.clock.now()
    for report in reports:
        await kit.need(ReturnPath).take(
            BounceMail(
                token=report.token, recipient=report.address, sender=arrival.mail_from, raw=raw, at=now
            )
        )
    if not teams:
        return 0
    content = ReceivedText(raw, None, len(raw))
    return show_outcome(
        await kit.need(MessageReceiver).take(arrival._replace(recipients=tuple(teams)), content), json=json
    )


def show_outcome(outcome: ArrivalOutcome, *, json: bool) -> int:
    status = STATUSES[outcome.fate]
    if status:
        raise stopped(f"The message was not stored: {outcome.fate.value}.", status)
    if json:
        show_json({"object": "list", "data": [{"object": "email", "id": found} for found in outcome.ids]})
    elif outcome.ids:
        for found in outcome.ids:
            say(f"stored as {found}")
    else:
        say("it was stored before")
    return 0


def local_and_domain(address: str) -> tuple[str, str]:
    """Return the parts of a recipient; a bare `postmaster` has no domain."""
    if address.lower() == "postmaster":
        return address, ""
    try:
        found = parse_mailbox(address)
    except AddressError:
        raise stopped(f"{address} is not an address.", NO_USER) from None
    return found.local, found.domain


def with_crlf(raw: bytes) -> bytes:
    """Return the message with the line ends of the wire, without the line that mailbox files put in front.

    Files of this system end their lines in LF alone. Where there is a CR, the line ends are meant to be those
    of the wire, and the listener refuses others (SMTP-04).
    """
    found = _MBOX_LINE.match(raw)
    raw = raw[found.end() :] if found else raw
    return raw if b"\r" in raw else raw.replace(b"\n", b"\r\n")
