"""The queue of all teams: where mail goes, why it waits, and holding it back, retrying it, giving it up.

The acts are about the part that the page shows: all mail, that of a team, that to a destination, or both.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from pillarbox.dashboard.frame.screen_table import NavigationEntry
from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.visit import Visit, with_query
from pillarbox.dashboard.installation.choices import all_teams, names_of, shell, team_of
from pillarbox.dashboard.people import saved_form
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import reason_text, t, translated
from pillarbox.delivery.commands.words import in_conditions, why
from pillarbox.delivery.queue import operator_acts, operator_view
from pillarbox.delivery.queue.operator_view import scope_of, scope_words
from pillarbox.delivery.queue.overview import QueueFilter, QueueGroup, Totals, WaitingItem
from pillarbox.domains.names import NotADomain, normalised
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.time_limit import AlreadyRuns, to_its_end
from pillarbox.kernel.terminal.answers import span
from pillarbox.kernel.wire.problems import Invalid
from pillarbox.teams.team import Team
from pillarbox.timeline.record import Timeline

HERE: Final = "/dashboard/installation/queue"
DESTINATIONS: Final = 50
ITEMS: Final = 50
LONGEST_REASON: Final = 200
CONDITIONS: Final = ("due", "working", "retry", "scheduled", "fetching", "paused", "quarantined")
USUAL: Final = frozenset({"due", "working", "retry", "scheduled"})
BAD: Final = frozenset({"paused", "quarantined"})


class QueuePart(NamedTuple):
    """The part of the queue that a page is about, as its address names it."""

    team: Team | None
    domain: str | None
    teams: Sequence[Team]

    @property
    def filter(self) -> QueueFilter:
        return QueueFilter(self.team.id if self.team else None, self.domain)

    @property
    def fields(self) -> Mapping[str, str | None]:
        return {"team": str(self.team.id) if self.team else None, "domain": self.domain}

    @property
    def name(self) -> str:
        """The text that has to be typed before the mail of this part is given up."""
        return self.domain or (self.team.name if self.team else t("operator.queue.everything"))

    def command(self, *words: str) -> str:
        """Return the command that is about the same part."""
        if words and self.filter == QueueFilter():
            return shell("queue", *words, "--all")
        return shell("queue", *words, team=str(self.team.id) if self.team else None, domain=self.domain)


class UnknownPart(Invalid):
    """There is no such team, or the text is no domain."""


@screen(
    HERE,
    title="operator.queue",
    words="operator.queue.words",
    for_operators=True,
    navigation=NavigationEntry(group="installation", order=20, icon="queue", keys="Q"),
    query={"team": str, "domain": str, "done": str},
)
async def index(visit: Visit) -> Reply[Html]:
    given = {name: visit.request.query.text(name) for name in ("team", "domain")}
    if not any(given.values()):
        # After a login the form that asked for it is filled in again.
        given |= saved_form.kept(visit.request, visit.visitor).fields
    try:
        part = await _part(visit, given)
    except UnknownPart as unknown:
        part = await _part(visit, {})
        return await queue_page(visit, part, status=422, problem=unknown.message)
    return await queue_page(visit, part)


@act(
    f"{HERE}/pause",
    title="operator.queue.pause",
    back=HERE,
    for_operators=True,
    confirm=True,
    keeps=("team", "domain", "reason"),
)
async def pause(visit: Visit, form: Form) -> Reply[Html]:
    part = await _part_of(visit, form)
    reason = form.get("reason").strip()[:LONGEST_REASON] or None
    await operator_acts.pause(visit.pool, scope_of(part.filter), reason, visit.actor, visit.request.at)
    return _done(visit, part, "queue_paused")


@act(
    f"{HERE}/resume",
    title="operator.queue.resume",
    back=HERE,
    for_operators=True,
    confirm=True,
    keeps=("team", "domain"),
)
async def resume(visit: Visit, form: Form) -> Reply[Html]:
    part = await _part_of(visit, form)
    if not await operator_acts.resume(visit.pool, scope_of(part.filter), visit.actor, visit.request.at):
        return await queue_page(visit, part, status=409, problem=t("operator.queue.not_paused"))
    return _done(visit, part, "queue_resumed")


@act(
    f"{HERE}/retry",
    title="operator.queue.retry",
    back=HERE,
    for_operators=True,
    confirm=True,
    keeps=("team", "domain"),
)
async def retry(visit: Visit, form: Form) -> Reply[Html]:
    part = await _part_of(visit, form)
    work = operator_acts.retry(visit.pool, part.filter, visit.actor, visit.request.at)
    return await _ended(visit, part, work, "queue_retried")


@act(
    f"{HERE}/drop",
    title="operator.queue.drop",
    back=HERE,
    for_operators=True,
    confirm=True,
    keeps=("team", "domain"),
)
async def drop(visit: Visit, form: Form) -> Reply[Html]:
    """Give up the mail of the part, if its name was typed."""
    part = await _part_of(visit, form)
    if form.get("typed_name").strip() != part.name:
        problem = t("operator.queue.type_name", name=part.name)
        return await queue_page(visit, part, status=422, problem=problem)
    timeline, ids = visit.request.use(Timeline), visit.request.use(Ids)
    # Its batches are committed one by one: it ends, and is recorded, whatever becomes of this request.
    work = operator_acts.drop(visit.pool, timeline, part.filter, visit.actor, ids.now)
    return await _ended(visit, part, work, "queue_dropped")


async def queue_page(
    visit: Visit, part: QueuePart, *, status: int = 200, problem: str | None = None
) -> Reply[Html]:
    """Show the part of the queue; of one destination item by item."""
    now, names = visit.request.at, names_of(part.teams)
    queue = await operator_view.view(visit.pool, part.filter, now, DESTINATIONS)
    items: Sequence[WaitingItem] = ()
    if part.domain is not None:
        items = await operator_view.first_items(visit.pool, part.filter, now, ITEMS)
    pauses = [_pause(paused, names) for paused in queue.pauses]
    return await visit.draw(
        "installation/queue.html",
        status=status,
        problem=problem,
        part=part,
        is_filtered=part.filter != QueueFilter(),
        is_paused=any(paused.scope == scope_of(part.filter) for paused in queue.pauses),
        scope=scope_words(scope_of(part.filter), names),
        team_names={str(team.id): team.name for team in part.teams},
        figures=figures(queue.totals),
        totals=queue.totals,
        held=queue.held,
        is_idle=bool(queue.totals.due) and not queue.processes,
        pauses=pauses,
        groups=[_group(group, names, now) for group in queue.groups],
        has_more=queue.has_more,
        items=[_item(item, names, now, visit.visitor.team_id) for item in items],
        has_more_items=queue.totals.items > len(items) > 0,
    )


def figures(totals: Totals) -> list[tuple[str, int, str]]:
    """Return the conditions with how many items are in each: the usual ones, and all that are there."""
    counts = ((name, getattr(totals, name)) for name in CONDITIONS)
    return [
        (name, amount, "bad" if name in BAD else "") for name, amount in counts if amount or name in USUAL
    ]


async def _part(visit: Visit, given: Mapping[str, str | None]) -> QueuePart:
    teams = await all_teams(visit)
    team = team_of(teams, given.get("team"))
    if given.get("team") and team is None:
        raise UnknownPart(t("operator.no_team"))
    domain = (given.get("domain") or "").strip()
    try:
        return QueuePart(team, normalised(domain) if domain else None, teams)
    except NotADomain:
        raise UnknownPart(t("operator.no_domain", text=domain[:60])) from None


async def _part_of(visit: Visit, form: Form) -> QueuePart:
    """Return the part that a form names. A form of ours names one that there is."""
    return await _part(visit, {"team": form.get("team"), "domain": form.get("domain")})


async def _ended(visit: Visit, part: QueuePart, work: Coroutine[Any, Any, int], done: str) -> Reply[Html]:
    """Do work on the part to its end, whatever becomes of the request; 409 while such work goes on."""
    try:
        await to_its_end(work, part.filter)
    except AlreadyRuns:
        return await queue_page(visit, part, status=409, problem=t("operator.queue.still_runs"))
    return _done(visit, part, done)


def _done(visit: Visit, part: QueuePart, done: str) -> Reply[Html]:
    return visit.to(with_query(HERE, **part.fields, done=done))


def _pause(paused: Any, names: Mapping[UUID, str]) -> dict[str, Any]:
    part = operator_view.part_in(paused.scope)
    return {
        "words": scope_words(paused.scope, names),
        "reason": paused.reason,
        "since": paused.since,
        "team": str(part.team_id) if part.team_id else "",
        "domain": part.destination or "",
    }


def _group(group: QueueGroup, names: Mapping[UUID, str], now: datetime) -> dict[str, Any]:
    return {
        "destination": group.destination,
        "team": names.get(group.team_id, str(group.team_id)),
        "href": with_query(HERE, team=str(group.team_id), domain=group.destination.removeprefix("copies:")),
        "items": group.items,
        "tries": group.tries,
        "next_attempt_at": group.next_attempt_at,
        "is_now": group.next_attempt_at is not None and group.next_attempt_at <= now,
        "age": _age(now - group.oldest),
        "conditions": ", ".join(translated(part) for part in in_conditions(group).split(", ")),
        "reason": reason_text(group.reason),
    }


def _item(
    item: WaitingItem, names: Mapping[UUID, str], now: datetime, own_team: UUID | None
) -> dict[str, Any]:
    return {
        "id": str(item.email_id),
        "href": f"/dashboard/emails/{item.email_id}" if item.team_id == own_team else None,
        "team": names.get(item.team_id, str(item.team_id)),
        "tries": item.tries,
        "next_attempt_at": item.next_attempt_at,
        "is_now": item.next_attempt_at is not None and item.next_attempt_at <= now,
        "age": _age(now - item.created_at),
        "why": translated(why(item, now)),
        "host": item.last_host,
        "reply": item.last_reply,
    }


def _age(age: timedelta) -> str:
    return span(max(age, timedelta()))
