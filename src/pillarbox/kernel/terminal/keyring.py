"""`pillarbox keyring`: which keys the database needs, sealing again after a rotation, and giving up a lost
key."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated

import typer

from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.security import ring_check, sealed_values
from pillarbox.kernel.security.link_keys import LEARNED_AFTER, LinkKeys
from pillarbox.kernel.security.sealed_values import SealedColumn, SealedCount
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.settings.table import KEY_RING_FILE
from pillarbox.kernel.terminal.answers import (
    CommandRefused,
    Json,
    counted,
    perform,
    say,
    show_json,
    show_table,
)
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl
from pillarbox.kernel.terminal.program import running_program

group = typer.Typer(no_args_is_help=True, help="See which keys the database needs, and rotate the key ring.")

MOST_SHOWN = 100
LOOKED_FOR = 2 * ring_check.WATCH_SECONDS

KeyId = Annotated[str, typer.Argument(metavar="KEY", help="The id of the key, as `keyring show` prints it.")]


@group.command("show")
def show_keys(json: Json = False, data: Data = None, database_url: DatabaseUrl = None) -> None:
    """List the keys that the database needs, and what cannot be decrypted. Status 1 where a key is
    missing."""
    perform(lambda found: show(found, json=json), data=data, database_url=database_url, with_any_ring=True)


@group.command("reseal")
def reseal_all(data: Data = None, database_url: DatabaseUrl = None) -> None:
    """Encrypt everything with the first key of the ring, so that the others can be taken out of it."""
    perform(reseal, data=data, database_url=database_url)


@group.command("abandon")
def abandon_key(key: KeyId, data: Data = None, database_url: DatabaseUrl = None) -> None:
    """Give up a key that is lost: starts ask for it no more, and what it has encrypted stays unreadable."""
    perform(lambda found: abandon(found, key), data=data, database_url=database_url, with_any_ring=True)


@group.command("new-link-key")
def new_link_key(data: Data = None, database_url: DatabaseUrl = None) -> None:
    """Make another key for links in mail that is accepted from now on; older links go on working."""
    perform(add_link_key, data=data, database_url=database_url)


def columns() -> list[SealedColumn]:
    """Return the columns that the key ring seals, of all slices."""
    return [column for one in running_program().slices() for column in one.sealed]


def ring_of(connected: CommandDatabase) -> KeyRing | None:
    """Return the ring that the command was given, whether or not it fits."""
    text = connected.settings.secret_key
    return None if text is None else KeyRing.parse(text)


async def show(connected: CommandDatabase, *, json: bool) -> int:
    ring = ring_of(connected)
    keys = await ring_check.known_keys(connected.pool)
    missing = set(ring_check.lacking(ring, keys))
    found = await sealed_values.counted(connected.pool, columns(), ring)
    unlisted = sorted(set(found.by_key) - {key.id for key in keys})
    rows = [
        (key.id, state(key.id in missing, key.is_abandoned, ring, key.id), found.by_key.get(key.id, 0))
        for key in keys
    ]
    rows += [(key_id, "not listed", found.by_key[key_id]) for key_id in unlisted]
    if json:
        show_json(
            {
                "object": "key_ring",
                "keys": [{"id": row[0], "state": row[1], "values": row[2]} for row in rows],
                "unopened": [one.sentence for one in found.unopened],
            }
        )
    else:
        show_table(("Key", "State", "Values"), rows)
        for sentence in sentences(found):
            say(sentence)
        if unlisted:
            say(UNLISTED)
    return int(bool(missing or found.unopened or unlisted))


def state(is_missing: bool, is_abandoned: bool, ring: KeyRing | None, key_id: str) -> str:
    """Return how a key that the database needs stands."""
    if is_abandoned:
        return "abandoned"
    if is_missing:
        return "missing"
    return "first" if ring is not None and ring.active_id == key_id else "in the ring"


def sentences(sealed_count: SealedCount, limit: int = MOST_SHOWN) -> list[str]:
    """Return a sentence for each value that cannot be decrypted, at most `limit` of them, and one with the
    number of the rest."""
    lines = [one.sentence for one in sealed_count.unopened[:limit]]
    if len(sealed_count.unopened) > limit:
        lines.append(f"… and {counted(len(sealed_count.unopened) - limit, 'more value')}.")
    return lines


UNLISTED = (
    "The database needs keys that its list lacks (not listed), so starts do not ask for them; "
    "`pillarbox keyring reseal` lists them again."
)


async def reseal(connected: CommandDatabase) -> int:
    ring, sealed = connected.key_ring(), columns()
    before = {key.id for key in await ring_check.known_keys(connected.pool)}
    done = await sealed_values.reseal(connected.pool, sealed, ring)
    needed = await sealed_values.forget_unused(connected.pool, sealed, ring)
    say(f"{counted(done, 'value')} encrypted again, with the key {ring.active_id}.")
    if other := await other_in_file(connected, ring):
        say(other)
    if before - set(needed) and (used := await still_used(connected, set(needed))):
        say(
            f"A server that runs still encrypts with {' and '.join(used)}: restart every server with "
            f"{ring.active_id} at the front of its key ring, then run this again."
        )
        return 1
    idle = [key for key in ring.key_ids if key not in needed]
    if idle:
        say(f"No value needs {' or '.join(idle)} any more. {LINKS}")
    return left_over(needed, ring)


async def other_in_file(connected: CommandDatabase, ring: KeyRing) -> str | None:
    """Return a hint for the operator where the file begins with another key than the ring of the running
    server: it may not have been restarted since the file was changed."""
    path = connected.settings.data / KEY_RING_FILE
    try:
        first = KeyRing.parse(await asyncio.to_thread(path.read_text, "utf-8")).active_id
    except (OSError, ValueError):
        return None
    if connected.listeners is None or first == ring.active_id:
        return None
    return (
        f"{path} begins with the key {first}, which the server that runs here does not use yet: restart it, "
        "then run this again."
    )


async def still_used(connected: CommandDatabase, needed: set[str]) -> list[str]:
    """Return the keys that a running process has made known again since they were forgotten: it encrypts
    with them."""
    say(f"Looking for {LOOKED_FOR:.0f} seconds whether a server still encrypts with another key …")
    await asyncio.sleep(LOOKED_FOR)
    return sorted({key.id for key in await ring_check.known_keys(connected.pool)} - needed)


async def add_link_key(connected: CommandDatabase) -> int:
    number = await LinkKeys(connected.pool, SystemClock(), connected.key_ring()).add()
    minutes = LEARNED_AFTER // timedelta(minutes=1)
    say(f"The key {number} makes the links of mail that is accepted {minutes} minutes from now or later.")
    return 0


LINKS = (
    "Signed links and return addresses that were made with a key are valid while the ring has it: leave it "
    "at the end of the ring for as long as they shall work, then take it out on every machine."
)


def left_over(needed: Sequence[str], ring: KeyRing) -> int:
    """Say which values could not be encrypted again; the exit status."""
    lost = [key for key in needed if key != ring.active_id]
    if lost:
        say(f"Some values still need {' and '.join(lost)}; `pillarbox keyring show` names them.")
    return int(bool(lost))


async def abandon(connected: CommandDatabase, key: str) -> int:
    ring = ring_of(connected)
    known = {found.id: found for found in await ring_check.known_keys(connected.pool)}
    if key not in known:
        raise CommandRefused(
            f"The database needs no key {key}; `pillarbox keyring show` lists those that it needs."
        )
    if ring is not None and ring_check.opens(ring, known[key]):
        raise CommandRefused(
            f"The key {key} is in the key ring; take it out of there first if nothing shall use it."
        )
    if connected.listeners is not None:
        raise CommandRefused("A server runs here, so it has the key; run this where the key is missing.")
    if not await sealed_values.abandon(connected.pool, key):
        raise CommandRefused(f"The key {key} was abandoned before.")
    say(f"Starts ask for the key {key} no more. What it has encrypted cannot be read:")
    found = await sealed_values.counted(connected.pool, columns(), ring)
    for sentence in sentences(found):
        say(sentence)
    say("Mail of these domains is held until then; `pillarbox queue retry` lets it go afterwards.")
    return 0
