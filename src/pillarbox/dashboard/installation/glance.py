"""The installation at a glance: processes, database, blob store, disk, certificate, backups, queue."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import pillarbox
from pillarbox.dashboard import pages
from pillarbox.dashboard.frame.screen_table import NavigationEntry
from pillarbox.dashboard.frame.screens import screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.installation.check_sentences import said
from pillarbox.dashboard.installation.choices import all_teams, shell
from pillarbox.dashboard.installation.facts import InstallationFacts
from pillarbox.dashboard.texts import t
from pillarbox.dashboard.texts.number_format import number
from pillarbox.delivery.queue import operator_view
from pillarbox.delivery.queue.overview import QueueFilter
from pillarbox.doctor import backups, machine, shared_state
from pillarbox.doctor.checks import Check, Level
from pillarbox.doctor.examination_runs import last_runs
from pillarbox.doctor.own_certificate import certificate
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.http import maintenance
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.observability import installation
from pillarbox.kernel.postgres import connection_limits
from pillarbox.kernel.process import process_table
from pillarbox.kernel.process.queries import SeenProcess
from pillarbox.kernel.settings import kinds
from pillarbox.kernel.settings.kinds import WrongValue
from pillarbox.kernel.storage.disk_space import disks_of, space_of

HERE: Final = "/dashboard/installation"
ALIVE: Final = timedelta(seconds=30)
SHOWN_FOR: Final = timedelta(days=1)
SEVERITY: Final = (Level.PROBLEM, Level.WARNING, Level.OK, Level.SKIPPED)
TONES: Final = {Level.OK: "good", Level.WARNING: "warn", Level.PROBLEM: "bad", Level.SKIPPED: "quiet"}


@screen(
    HERE,
    title="operator.glance",
    words="operator.glance.words",
    for_operators=True,
    navigation=NavigationEntry(group="installation", order=10, icon="server", keys="i"),
    query={"done": str},
)
async def index(visit: Visit) -> Reply[Html]:
    now, pool = visit.request.at, visit.pool
    processes = await process_table.seen_since(pool, now - SHOWN_FOR)
    alive = [process for process in processes if now - process.seen_at <= ALIVE]
    queue = await operator_view.view(pool, QueueFilter(), now, 1)
    teams = await all_teams(visit)
    database = await installation.database_facts(pool)
    backup = await installation.newest_backup(pool)
    settings = visit.request.use(InstallationFacts).settings
    checks = await state_checks(visit)
    return await visit.draw(
        "installation/glance.html",
        figures=[
            (t("operator.glance.processes"), number(len(alive)), None, "bad" if not alive else "", None),
            (t("operator.glance.waiting"), number(queue.totals.items), queue.held, "", f"{HERE}/queue"),
            (t("operator.glance.teams"), number(len(teams)), None, "", f"{HERE}/teams"),
            (
                t("operator.glance.database"),
                pages.size(database.octets),
                f"PostgreSQL {database.version}",
                "",
                None,
            ),
        ],
        version=pillarbox.__version__,
        schema=database.schema_version,
        public_url=settings.public_url,
        hostname=settings.hostname,
        blobs=blobs_in_words(settings.blobs),
        maintenance=await maintenance.current(pool),
        backup=backup,
        verify=(await last_runs(pool)).verify,
        checks=[_check(check) for check in checks],
        processes=[_process(process, now) for process in processes],
        command=[shell("version"), shell("doctor"), shell("maintenance", "status"), shell("queue")],
    )


async def state_checks(visit: Visit) -> Sequence[Check]:
    """Return the checks of `pillarbox doctor` that ask nobody outside and cost little, the worst first."""
    facts, pool, now = visit.request.use(InstallationFacts), visit.pool, visit.request.at
    settings = facts.settings
    clock, age, put_aside, blobs, shown = await asyncio.gather(
        machine.clock(pool, SystemClock()),
        backups.age(pool, now),
        backups.put_aside(pool),
        shared_state.blob_store(pool, settings),
        certificate(settings, now, is_known=True),
    )
    disks = await asyncio.to_thread(machine.disk, disks_of(settings.data, settings.blobs), space_of)
    database = await machine.database(pool, connection_limits.of_machine(settings))
    amiss = [check for check in database if check.level is not Level.OK]
    checks = [*disks, blobs, shown, age, put_aside, clock, *(amiss or [_database_is_well(database)])]
    return sorted(checks, key=lambda check: SEVERITY.index(check.level))


def _database_is_well(checks: Sequence[Check]) -> Check:
    """Return one check in place of many that found nothing amiss."""
    found = f"{len(checks)} settings are as they should be"
    return Check("database", Level.OK, "The database keeps what it commits", found)


def blobs_in_words(url: str) -> str:
    """Return where blobs are, without anything that could be a secret."""
    scheme, _, rest = url.partition(":")
    if scheme == "file":
        return rest
    bucket = rest.lstrip("/").partition("?")[0].rpartition("@")[2]
    return f"{scheme}://{bucket}"


def _check(check: Check) -> dict[str, Any]:
    return {
        "title": said(check.name, check.title),
        "found": said(check.name, check.found),
        "step": said(check.name, check.step) if check.step and check.level is not Level.OK else None,
        "level": check.level.value,
        "tone": TONES[check.level],
    }


def _process(process: SeenProcess, now: datetime) -> dict[str, Any]:
    return {
        "host": process.host.partition("/")[0][:8],
        "pid": process.pid,
        "roles": process.roles.replace(",", ", "),
        "route": _route(process.route),
        "started_at": process.started_at,
        "seen_at": process.seen_at,
        "is_alive": now - process.seen_at <= ALIVE,
    }


def _route(text: str | None) -> str | None:
    """Return the kind of route; its text may name a server, and never a password."""
    if text is None:
        return None
    try:
        return kinds.route(text).kind.value
    except WrongValue:
        return None
