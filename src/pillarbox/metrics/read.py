"""Answering a question from rollups, and its odd edges from the timeline (architecture 2.11).

The range is cut at quarter hours. What lies between is a sum of rollups and of increments that are not folded
yet; what is left at an edge, less than a quarter hour, comes from the timeline. Where the quarter hour has
rollups of ten seconds, less than ten seconds come from there. Of a time whose history retention has
removed, both edges count as if they lay at the beginning of their quarter hour.

Every day of rollups has a version, which changes with them and is read in the same snapshot. So a reader with
the counts of an earlier answer reads the new ones, and checks whether the rest still holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.kernel.ids import EPOCH, MICROSECOND, uuid7
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.problems import Invalid
from pillarbox.metrics import history_queries, queries
from pillarbox.metrics.cover import DAY as DAY_LEVEL
from pillarbox.metrics.cover import FINE, HOUR, UNITS, RollupRange, cover
from pillarbox.metrics.periods import DAY, QUARTER, Period, periods
from pillarbox.metrics.question import MetricsQuery, Range
from pillarbox.metrics.table import ID_OCTETS, Counts, MetricKey, MetricTable, of_rows, of_texts

MOST_PERIODS = 10_000
MOST_ROWS = 10_000
MOST_GROUPS = 25_000
"""Sums that cancel out to nothing, and mail without a broadcast, are no rows."""
MANY_PERIODS = 200
"""With more of them it pays to count rows before they are made."""
MOST_STATES = 400
"""Periods of an answer whose state is worth reading."""
MOST_PLAIN = 20_000
"""Rollups that are read as they are; the database adds more of them up."""
TEN_SECONDS = timedelta(seconds=10)
SECOND = timedelta(seconds=1)
FOREVER = datetime(9999, 12, 31, tzinfo=UTC)


class TooManyPeriods(Invalid):
    def __init__(self, granularity: str) -> None:
        super().__init__(
            f"The range is too long for the granularity `{granularity}`: more than {MOST_PERIODS} periods."
        )


class TooManyRows(Invalid):
    def __init__(self) -> None:
        super().__init__(f"More than {MOST_ROWS} rows. Narrow the range or use more filters.")


State = tuple[str | None, ...]
"""The versions of the days that a period reads; None for a day without rollups."""


class PeriodCounts(NamedTuple):
    """The counts of the periods `asked`, and for every period the state that it was read in, or was found to
    be still in. None for a period without such a state: more may be counted in it soon."""

    table: MetricTable
    asked: Sequence[int]
    states: Sequence[State | None]


@dataclass(slots=True)
class ReadPlan:
    """Where the counts of a range come from. Rollups and increments cover [`lower`, `upper`), of which
    [`first`, `last`) in whole quarter hours; the timeline covers the `stretches`."""

    first: datetime
    last: datetime
    lower: datetime
    upper: datetime
    fine: list[tuple[datetime, datetime]] = field(default_factory=list)
    stretches: list[tuple[datetime, datetime]] = field(default_factory=list)


def cut(question: MetricsQuery) -> list[Period]:
    """Return the periods of the answer, or one without a name."""
    asked = question.range
    until = asked.until or _ceil(asked.reach + MICROSECOND, DAY)
    if not question.by("period"):
        return [Period(asked.start, until, "")]
    if asked.empty:
        return []
    found = periods(asked.start, asked.reach, question.zone, question.granularity, MOST_PERIODS)
    if found is None:
        raise TooManyPeriods(question.granularity)
    return found


async def rows(
    pool: asyncpg.Pool, team_id: UUID, question: MetricsQuery, periods: Sequence[Period]
) -> MetricTable:
    """Return the counts of every combination that was asked for, those of no broadcast included;
    one snapshot."""
    if question.range.empty or not periods:
        return MetricTable()
    if _is_even(question):
        # One statement is a snapshot by itself.
        made = plan(question.range, set(), None)
        return (await _sums(TeamDb(pool, team_id), question, periods, made, range(len(periods))))[0]
    async with pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
        db = TeamDb(conn, team_id)
        if question.emails or question.by("email"):
            return await _by_history(db, question, periods)
        return await _by_rollups(db, question, periods, await _planned(db, question.range))


async def _refuse_large(
    db: TeamDb, question: MetricsQuery, periods: Sequence[Period], read_plan: ReadPlan
) -> None:
    """Raise TooManyRows where hours, or UTC days, show that there will be more rows than an answer may
    have. It has a row for each that counted something and is a period itself; of others, for every third
    at least."""
    level, unit = (HOUR, timedelta(hours=1)) if question.granularity == "hourly" else (DAY_LEVEL, DAY)
    start, end = _ceil(read_plan.first, unit), _floor(read_plan.last, unit)
    is_whole = all(period.start == _floor(period.start, unit) for period in periods)
    most = MOST_ROWS if is_whole else 3 * MOST_ROWS
    if question.granularity in ("hourly", "daily") and await queries.more_than(
        db, level, start, end, _wanted(question)._replace(most=most)
    ):
        raise TooManyRows


def spans(question: MetricsQuery, periods: Sequence[Period]) -> list[tuple[datetime, datetime]] | None:
    """Return from when to when the rollups of each period are read; None where periods have no states."""
    if question.range.empty or not periods or len(periods) > MOST_STATES or not _is_even(question):
        return None
    made = plan(question.range, set(), None)
    return [_span(made, period) for period in periods]


async def changed(
    pool: asyncpg.Pool,
    team_id: UUID,
    question: MetricsQuery,
    periods: Sequence[Period],
    known: Sequence[State | None],
) -> PeriodCounts:
    """Return the counts of the periods of which nothing is known, or that are not in the state any more in
    which they are known; one snapshot. Only where there are `spans`."""
    db = TeamDb(pool, team_id)
    made = plan(question.range, set(), None)
    asked: Sequence[int] = [at for at, state in enumerate(known) if state is None]
    if asked:
        table, sums = await _sums(db, question, periods, made, asked)
    else:
        table, sums = MetricTable(), await queries.counts_without_rows(db, made.lower, made.upper)
    states = _states(question, periods, made, sums)
    if any(state is not None and state != now for state, now in zip(known, states, strict=True)):
        asked = range(len(periods))
        table, sums = await _sums(db, question, periods, made, asked)
        states = _states(question, periods, made, sums)
    return PeriodCounts(table, asked, states)


def _states(
    question: MetricsQuery, periods: Sequence[Period], read_plan: ReadPlan, sums: queries.Sums
) -> list[State | None]:
    """Return the state of each period. The present day has none, nor has what increments may be counted in
    that are not folded yet."""
    settled = (_floor(question.range.reach, DAY) - EPOCH) // SECOND
    if sums.pending is not None:
        settled = min(settled, sums.pending)
    states: list[State | None] = []
    for period in periods:
        start, end = (int((at - EPOCH) // SECOND) for at in _span(read_plan, period))
        days = range(start // queries.DAY, -(-end // queries.DAY))
        states.append(tuple(map(sums.versions.get, days)) if end <= settled else None)
    return states


def _is_even(question: MetricsQuery) -> bool:
    """Return whether the answer comes from rollups alone."""
    return not (question.emails or question.by("email") or _odd(question.range))


async def _by_history(db: TeamDb, question: MetricsQuery, periods: Sequence[Period]) -> MetricTable:
    start, until = question.range.start, question.range.until or FOREVER
    ids = _ids_between(start, until)
    emails: list[UUID] | None = list(question.emails)
    if not emails:
        emails = await history_queries.emails_in(db, start, until, ids, MOST_ROWS)
        if emails is None:
            raise TooManyRows
    begins = [period.start for period in periods]
    wanted = _wanted(question)._replace(emails=emails)
    return of_rows(_rows(await history_queries.events(db, [(start, until)], [ids], begins, wanted)))


async def _by_rollups(
    db: TeamDb, question: MetricsQuery, periods: Sequence[Period], read_plan: ReadPlan
) -> MetricTable:
    table, _ = await _sums(db, question, periods, read_plan, range(len(periods)))
    if not read_plan.stretches:
        return table
    ids = [_ids_between(*stretch) for stretch in read_plan.stretches]
    begins = [period.start for period in periods]
    edges = await history_queries.events(db, read_plan.stretches, ids, begins, _wanted(question))
    return of_rows([*table.rows(), *_rows(edges)])


async def _sums(
    db: TeamDb, question: MetricsQuery, periods: Sequence[Period], read_plan: ReadPlan, asked: Sequence[int]
) -> tuple[MetricTable, queries.Sums]:
    """Return the rollups of the periods `asked`, and all increments, of whatever period."""
    begins = [period.start for period in periods]
    wanted = _wanted(question)
    if len(asked) > MANY_PERIODS and wanted.by_domain:
        await _refuse_large(db, question, periods, read_plan)
    is_plain = wanted.by_domain and question.range.until is not None
    buckets = _buckets(read_plan, periods, asked) if is_plain else None
    if buckets is not None:
        few = wanted._replace(most=MOST_PLAIN // max(1, len(asked)) + 1)
        read = await queries.plain(db, buckets, begins, read_plan.lower, read_plan.upper, few)
        if all(len(domain_ids) < few.most * ID_OCTETS for _, domain_ids, *_ in read.rows):
            return of_texts(read.rows), read
    read = await queries.summed(
        db, _parts(read_plan, periods, asked), begins, read_plan.lower, read_plan.upper, wanted
    )
    table = of_texts(read.rows)
    if len(table.keys) >= MOST_GROUPS:
        raise TooManyRows
    return table, read


async def _planned(db: TeamDb, asked: Range) -> ReadPlan:
    """Decide for each odd edge how it is answered."""
    fine = await queries.fine(db, sorted(_odd(asked)))
    return plan(asked, fine, await queries.purged_before(db))


def _odd(asked: Range) -> set[datetime]:
    """Return the quarter hours that the range begins or ends inside of."""
    edges = [at for at in (asked.start, asked.until) if at is not None]
    return {_floor(at, QUARTER) for at in edges if at != _floor(at, QUARTER)}


def plan(asked: Range, fine: set[datetime], purged: datetime | None) -> ReadPlan:
    """Return the plan for the range. `fine`: the odd quarter hours that have ten-second rollups; `purged`:
    before it there is no history."""
    until = asked.until
    last = _ceil(asked.reach + MICROSECOND, DAY) if until is None else _floor(until, QUARTER)
    made = ReadPlan(asked.start, last, asked.start, FOREVER if until is None else last)
    quarter = _floor(asked.start, QUARTER)
    if until is not None and until < quarter + QUARTER:
        _inside(made, asked.start, until, quarter, fine, purged)
        return made
    if asked.start != quarter:
        _begin(made, asked.start, quarter, fine, purged)
    if until is not None and until != last:
        _end(made, until, last, fine, purged)
    return made


def _begin(
    read_plan: ReadPlan, start: datetime, quarter: datetime, fine: set[datetime], purged: datetime | None
) -> None:
    if purged is not None and quarter < purged:
        read_plan.first = read_plan.lower = quarter
        return
    after = quarter + QUARTER
    read_plan.first = after
    read_plan.lower = min(_ceil(start, TEN_SECONDS), after) if quarter in fine else after
    read_plan.stretches.append((start, read_plan.lower))
    read_plan.fine.append((read_plan.lower, after))


def _end(
    read_plan: ReadPlan, until: datetime, quarter: datetime, fine: set[datetime], purged: datetime | None
) -> None:
    if purged is not None and quarter < purged:
        return
    read_plan.upper = _floor(until, TEN_SECONDS) if quarter in fine else quarter
    read_plan.fine.append((quarter, read_plan.upper))
    read_plan.stretches.append((read_plan.upper, until))


def _inside(
    read_plan: ReadPlan,
    start: datetime,
    until: datetime,
    quarter: datetime,
    fine: set[datetime],
    purged: datetime | None,
) -> None:
    """Plan a whole range that lies in one quarter hour."""
    read_plan.first = read_plan.last = read_plan.lower = read_plan.upper = quarter
    if purged is not None and quarter < purged:
        return
    low, high = _ceil(start, TEN_SECONDS), _floor(until, TEN_SECONDS)
    if quarter in fine and low <= high:
        read_plan.lower, read_plan.upper = low, high
        read_plan.fine.append((low, high))
        read_plan.stretches += [(start, low), (high, until)]
    else:
        read_plan.stretches.append((start, until))


def _buckets(read_plan: ReadPlan, periods: Sequence[Period], asked: Sequence[int]) -> queries.Buckets | None:
    """Return the rollups to read where each period is exactly one of them."""
    if read_plan.fine or read_plan.stretches:
        return None
    buckets = queries.Buckets([], [], [])
    for index in asked:
        parts = _cover(read_plan, periods[index])
        if len(parts) != 1 or parts[0].end - parts[0].start != UNITS[parts[0].level]:
            return None
        buckets.levels.append(parts[0].level)
        buckets.starts.append(EPOCH + parts[0].start * QUARTER)
        buckets.periods.append(index)
    return buckets


def _parts(read_plan: ReadPlan, periods: Sequence[Period], asked: Sequence[int]) -> queries.RollupColumns:
    """Return the rollups to read, as columns. What one period adds another one often takes away (the evening
    of a day of Kolkata): such a part stands there once."""
    uses: dict[tuple[int, datetime, datetime], list[list[int | None]]] = {}
    for index in asked:
        period = periods[index]
        for part in _cover(read_plan, period):
            span = part.level, EPOCH + part.start * QUARTER, EPOCH + part.end * QUARTER
            _use(uses.setdefault(span, []), index, part.sign)
        for low, high in read_plan.fine:
            if period.start <= low < period.end and low < high:
                _use(uses.setdefault((FINE, low, high), []), index, 1)
    rows = [(*span, added, taken) for span, used in uses.items() for added, taken in used]
    return (
        queries.RollupColumns(*map(list, zip(*rows, strict=True)))
        if rows
        else queries.RollupColumns(levels=[], starts=[], ends=[], added=[], taken=[])
    )


def _cover(read_plan: ReadPlan, period: Period) -> list[RollupRange]:
    start, end = _span(read_plan, period)
    return cover((start - EPOCH) // QUARTER, (end - EPOCH) // QUARTER)


def _span(read_plan: ReadPlan, period: Period) -> tuple[datetime, datetime]:
    return max(period.start, read_plan.first), min(period.end, read_plan.last)


def _use(used: list[list[int | None]], period: int, sign: int) -> None:
    """Note that a part is added to a period (or taken from it), beside the use in the other sense."""
    place = 0 if sign > 0 else 1
    for use in used:
        if use[place] is None:
            use[place] = period
            return
    used.append([period, None] if sign > 0 else [None, period])


def _wanted(question: MetricsQuery) -> queries.MetricsSelection:
    return queries.MetricsSelection(
        domains=list(question.domains) or None,
        broadcasts=list(question.broadcasts) or None,
        emails=None,
        by_domain=question.by("domain"),
        by_broadcast=question.by("broadcast"),
        by_email=question.by("email"),
        most=MOST_GROUPS,
    )


def _rows(records: Sequence[Any]) -> Iterator[tuple[int, MetricKey, Counts]]:
    """Yield the records of the timeline as rows of a table; TooManyRows at the limit."""
    if len(records) >= MOST_GROUPS:
        raise TooManyRows
    for period, domain_id, name, broadcast_id, email_id, *counts in records:
        yield period, MetricKey(name, *map(_text, (domain_id, broadcast_id, email_id))), tuple(counts)


def _text(key: UUID | None) -> str | None:
    return None if key is None else str(key)


def _ids_between(start: datetime, until: datetime) -> tuple[UUID, UUID]:
    """Return the least and the greatest id of emails that were accepted in [start, until)."""
    low, high = (max(0, (at - EPOCH) // MICROSECOND) for at in (start, until))
    return uuid7(low, bytes(8)), uuid7(high, b"\xff" * 8)


def _floor(instant: datetime, unit: timedelta) -> datetime:
    return instant - (instant - EPOCH) % unit


def _ceil(instant: datetime, unit: timedelta) -> datetime:
    return instant + (EPOCH - instant) % unit


async def fine_quarters(db: TeamDb, quarters: Sequence[datetime]) -> set[datetime]:
    """Return those quarter hours that have ten-second rollups."""
    return await queries.fine(db, quarters)


async def purged_before(db: TeamDb) -> datetime | None:
    """Return the instant up to which retention has removed the history of emails."""
    return await queries.purged_before(db)
