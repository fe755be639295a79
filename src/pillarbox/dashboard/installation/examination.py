"""Doctor and verify, run from the page in the background; the last result of each stays."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from pillarbox.dashboard.frame.screen_table import NavigationEntry
from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.installation.check_sentences import said, said_gap
from pillarbox.dashboard.installation.choices import shell
from pillarbox.dashboard.installation.facts import InstallationFacts
from pillarbox.dashboard.installation.glance import TONES
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t
from pillarbox.dashboard.texts.number_format import number
from pillarbox.doctor import verification
from pillarbox.doctor.checks import Level, is_healthy
from pillarbox.doctor.examination import CheckedInstallation, examined
from pillarbox.doctor.examination_queries import ExaminationRun
from pillarbox.doctor.examination_runs import ExaminationKind, ExaminationRunner, Result, last_runs
from pillarbox.doctor.real_world import document, listeners_of, outside_of
from pillarbox.doctor.verification import VerifiedInstallation, verified
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.postgres import connection_limits
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.people.audit import Act

HERE: Final = "/dashboard/installation/examination"
GAPS: Final = 100


@screen(
    HERE,
    title="operator.examination",
    words="operator.examination.words",
    for_operators=True,
    navigation=NavigationEntry(group="installation", order=40, icon="health", keys="H"),
    query={"done": str},
)
async def index(visit: Visit) -> Reply[Html]:
    return await examination_page(visit)


@act(
    f"{HERE}/doctor",
    title="operator.examination.run_doctor",
    back=HERE,
    records=Act.INSTALLATION_EXAMINED,
    for_operators=True,
    confirm=True,
)
async def run_doctor(visit: Visit, _: Form) -> Reply[Html]:
    """Begin the checks of `pillarbox doctor` in the background and show the screen again, which shows their
    result; 409 while a run goes on."""
    facts, pool = visit.request.use(InstallationFacts), visit.pool

    async def work() -> Result:
        settings = facts.settings
        installation = CheckedInstallation(
            settings,
            pool,
            running=True,
            listeners=listeners_of(settings, facts.listeners),
            connections=connection_limits.of_machine(settings),
            sealed=facts.sealed,
        )
        checks = await examined(installation, outside_of(settings))
        return is_healthy(checks), document(None, checks)

    return await _begun(visit, ExaminationKind.DOCTOR, work)


@act(
    f"{HERE}/verify",
    title="operator.examination.run_verify",
    back=HERE,
    records=Act.INSTALLATION_VERIFIED,
    for_operators=True,
    confirm=True,
)
async def run_verify(visit: Visit, _: Form) -> Reply[Html]:
    """Begin what `pillarbox verify --no-collect` does."""
    facts, pool, ring = visit.request.use(InstallationFacts), visit.pool, visit.request.use(KeyRing)

    async def work() -> Result:
        installation = VerifiedInstallation(
            settings=facts.settings,
            pool=pool,
            invariants=facts.invariants,
            sealed=facts.sealed,
            ring=ring,
        )
        found = await verified(installation, GAPS, collect=False)
        return not found.gaps, await asyncio.to_thread(verification.document, found)

    return await _begun(visit, ExaminationKind.VERIFY, work)


async def examination_page(visit: Visit, *, status: int = 200, problem: str | None = None) -> Reply[Html]:
    """Show the last run of each kind."""
    runs = await last_runs(visit.pool)
    return await visit.draw(
        "installation/examination.html",
        status=status,
        problem=problem,
        doctor=run_facts(runs.doctor, visit.request.at),
        verify=run_facts(runs.verify, visit.request.at),
        command=[shell("doctor"), f"{shell('verify')} --no-collect"],
    )


def run_facts(run: ExaminationRun | None, now: datetime) -> dict[str, Any] | None:
    """Return a run as the page shows it; None where there was none."""
    if run is None:
        return None
    result = json.loads(run.result) if run.result else {}
    is_running = run.finished_at is None and run.ends_by >= now
    seconds = 0.0 if run.finished_at is None else (run.finished_at - run.started_at).total_seconds()
    levels = Counter(check["level"] for check in result.get("checks", ()))
    return {
        "warnings": levels[Level.WARNING.value],
        "skipped": levels[Level.SKIPPED.value],
        "started_at": run.started_at,
        "finished_at": run.finished_at,
        "is_running": is_running,
        "is_healthy": run.is_healthy,
        "seconds": number(seconds),
        "error": said("run", result["error"]) if result.get("error") else None,
        "checks": [_check(check) for check in result.get("checks", ())],
        "gaps": [
            {**gap, "sentence": said_gap(gap["name"], gap["sentence"])} for gap in result.get("gaps", ())
        ],
        "emails": result.get("emails", 0),
        "recipients": result.get("recipients", 0),
        "teams": result.get("teams", 0),
        "blobs": result.get("blobs", {}).get("named", 0),
    }


def _check(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored check with its texts in the language of the page."""
    name, level, step = stored.get("name", ""), Level(stored["level"]), stored.get("step")
    return {
        "title": said(name, stored["title"]),
        "found": said(name, stored["found"]),
        "step": said(name, step) if step and level is not Level.OK else None,
        "level": level.value,
        "tone": TONES[level],
    }


async def _begun(visit: Visit, kind: ExaminationKind, work: Any) -> Reply[Html]:
    if not await visit.request.use(ExaminationRunner).start(kind, work):
        return await examination_page(visit, status=409, problem=t("operator.examination.busy"))
    return visit.to(HERE, done="examination_begun")
