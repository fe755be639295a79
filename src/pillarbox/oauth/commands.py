"""`pillarbox oauth`: which programs there are, which are verified or disabled, and what they may do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final
from uuid import UUID

import typer

from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.postgres.database import Connection, transaction
from pillarbox.kernel.terminal.answers import (
    CommandRefused,
    Json,
    as_id,
    counted,
    perform,
    say,
    show_json,
    show_table,
)
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl
from pillarbox.kernel.terminal.keyring import ring_of
from pillarbox.oauth import grant_queries, grants
from pillarbox.oauth.clients import client_queries, redirects
from pillarbox.oauth.clients.client_queries import ListedClient
from pillarbox.oauth.clients.clients import is_document_url
from pillarbox.oauth.grants import Reason
from pillarbox.oauth.keys import SigningKeys
from pillarbox.people.audit import OPERATOR, Act, record
from pillarbox.teams.commands.choosing import TeamOption, one_team

MOST: Final = 1000
LONGEST_PLACES: Final = 80

ClientId = Annotated[
    str, typer.Argument(metavar="CLIENT_ID", help="The id of the program, or the URL of its document.")
]
Off = Annotated[bool, typer.Option("--off", help="Take the mark away again.")]
AtOnce = Annotated[
    bool,
    typer.Option("--at-once", help="End all access tokens too, because a key has become known to others."),
]

group = typer.Typer(no_args_is_help=True, help="Look at programs that act for people, and disable them.")


@group.callback()
def of_programs() -> None:
    """Look at programs that act for people, and disable them."""


@group.command("clients")
def show_clients(json: Json = False, data: Data = None, database_url: DatabaseUrl = None) -> None:
    """List the programs, the newest first."""
    perform(lambda connected: listed(connected, json=json), data=data, database_url=database_url)


@group.command("verify")
def verify(
    client_id: ClientId, off: Off = False, data: Data = None, database_url: DatabaseUrl = None
) -> None:
    """Say that a program is who it says it is: people are no longer warned. It changes nothing else."""
    perform(
        lambda connected: marked(connected, client_id, is_verified=not off),
        data=data,
        database_url=database_url,
    )


@group.command("disable")
def disable(client_id: ClientId, data: Data = None, database_url: DatabaseUrl = None) -> None:
    """Let a program act no more: its grants are revoked, and nobody can let it in."""
    perform(lambda connected: disabled(connected, client_id), data=data, database_url=database_url)


@group.command("enable")
def enable(client_id: ClientId, data: Data = None, database_url: DatabaseUrl = None) -> None:
    """Let people let a program in again. Grants that were revoked stay so."""
    perform(lambda connected: enabled(connected, client_id), data=data, database_url=database_url)


@group.command("grants")
def show_grants(
    team: TeamOption = None, json: Json = False, data: Data = None, database_url: DatabaseUrl = None
) -> None:
    """List what programs may do in a team, and might once."""
    perform(lambda connected: granted(connected, team, json=json), data=data, database_url=database_url)


@group.command("rotate-keys")
def rotate_keys(at_once: AtOnce = False, data: Data = None, database_url: DatabaseUrl = None) -> None:
    """Make another key that signs access tokens. The old one goes by itself."""
    perform(lambda connected: rotated(connected, at_once=at_once), data=data, database_url=database_url)


async def listed(connected: CommandDatabase, *, json: bool) -> int:
    """Print them: those that are registered, then those that a document describes."""
    programs = await client_queries.listed(connected.pool, MOST)
    described = await client_queries.described(connected.pool, MOST)
    if json:
        show_json(
            {
                "object": "list",
                "data": [program._asdict() for program in programs],
                "described": [program._asdict() for program in described],
            }
        )
        return 0
    show_table(
        ("Id", "Name", "Sends back to", "Scopes", "State", "Created", "First let in"),
        [
            (
                program.id,
                program.name,
                sent_back_to(program.redirect_uris),
                " ".join(program.scopes),
                state(program),
                program.created_at,
                program.granted_at,
            )
            for program in programs
        ],
    )
    if described:
        say()
        show_table(
            ("Document", "Grants", "Live", "Last let in"),
            [(program.client_id, program.grants, program.live, program.last_at) for program in described],
        )
    return 0


def sent_back_to(uris: Sequence[str]) -> str:
    """Return the hosts and schemes of redirect URIs, cut: anybody may register long ones."""
    places = ", ".join(dict.fromkeys(redirects.place(uri) for uri in uris))
    return places if len(places) <= LONGEST_PLACES else f"{places[:LONGEST_PLACES]}…"


def state(program: ListedClient) -> str:
    """Return the state of a program in words: built in, verified, disabled."""
    words = [
        word
        for word, applies in (
            ("built in", program.is_built_in),
            ("verified", program.is_verified),
            ("disabled", program.disabled_at is not None),
        )
        if applies
    ]
    return ", ".join(words) or "unverified"


async def marked(connected: CommandDatabase, client_id: str, *, is_verified: bool) -> int:
    """Mark a program, or take the mark away."""
    row_id = registered_id(client_id)
    async with transaction(connected.pool) as conn:
        _found(await client_queries.set_verified(conn, row_id, is_verified=is_verified), client_id)
        await _record(conn, Act.CLIENT_VERIFIED, str(row_id), {"is_verified": is_verified})
    say(f"The program {client_id} is {'verified' if is_verified else 'no longer verified'}.")
    return 0


async def disabled(connected: CommandDatabase, client_id: str) -> int:
    """Disable a program and revoke its grants; of one that a document describes only the latter."""
    now = SystemClock().now()
    async with transaction(connected.pool) as conn:
        if not is_document_url(client_id):
            row_id = registered_id(client_id)
            client_id = str(row_id)  # as grants have it, however it was written
            done = await client_queries.disable(conn, row_id, now)
            _found(done or await client_queries.exists(conn, row_id), client_id)
        revoked = await grants.revoke_of_client(conn, now, client_id)
        for ref in revoked:
            await record(
                conn,
                now,
                Act.GRANT_REVOKED,
                team_id=ref.team_id,
                actor=OPERATOR,
                target=str(ref.id),
                details={"reason": Reason.CLIENT_DISABLED.value},
            )
        await _record(conn, Act.CLIENT_DISABLED, client_id, {"grants_revoked": len(revoked)})
    say(f"{counted(len(revoked), 'grant')} of the program {client_id} revoked.")
    if is_document_url(client_id):
        say("Name its host with --oauth-cimd-refused-hosts to keep people from letting it in again.")
    else:
        say("Nobody can let it in.")
    return 0


async def enabled(connected: CommandDatabase, client_id: str) -> int:
    """Enable a program again."""
    row_id = registered_id(client_id)
    async with transaction(connected.pool) as conn:
        done = await client_queries.enable(conn, row_id)
        _found(done or await client_queries.exists(conn, row_id), client_id)
        if done:
            await _record(conn, Act.CLIENT_ENABLED, str(row_id), {})
    say(f"People can let the program {client_id} in.")
    return 0


async def granted(connected: CommandDatabase, team: str | None, *, json: bool) -> int:
    """Print the grants of a team, the newest first."""
    owner = await one_team(connected, team)
    listed_grants = await grant_queries.in_team(connected.pool, owner.id, MOST)
    if json:
        show_json({"object": "list", "data": [grant._asdict() for grant in listed_grants]})
    elif listed_grants:
        show_table(
            ("Id", "Program", "Person", "Scopes", "Created", "Last used", "Revoked", "Why"),
            [
                (
                    grant.id,
                    grant.name,
                    grant.email,
                    " ".join(grant.scopes),
                    grant.created_at,
                    grant.last_used_at,
                    grant.revoked_at,
                    grant.revoked_reason,
                )
                for grant in listed_grants
            ],
        )
    else:
        say(f"No program was let into the team {owner.name!r}.")
    return 0


async def rotated(connected: CommandDatabase, *, at_once: bool) -> int:
    """Make another key."""
    ring = ring_of(connected)
    if ring is None:
        raise CommandRefused(
            "The key ring of this installation is not here, and the new key has to be sealed."
        )
    keys = SigningKeys(connected.pool, SystemClock(), ring)
    if at_once:
        kid = await keys.replace()
        say(f"The key {kid} signs from now on. Access tokens end within a minute; programs get new ones.")
    else:
        kid = await keys.add()
        say(f"The key {kid} is published, and signs in 20 minutes.")
    return 0


def registered_id(client_id: str) -> UUID:
    """Return the id of a program that is registered; Refused for the URL of a document."""
    if is_document_url(client_id):
        raise CommandRefused(
            "A program that a document describes has no state here: its host stands on the page."
        )
    return as_id(client_id, "a program")


def _found(value: bool, client_id: str) -> None:
    if not value:
        raise CommandRefused(f"There is no program with the id {client_id}.")


async def _record(conn: Connection, what: Act, client_id: str, details: dict[str, object]) -> None:
    now = SystemClock().now()
    await record(conn, now, what, team_id=None, actor=OPERATOR, target=client_id, details=details)
