"""Whether requests stay as fast when a team has a million rows: the p99 of each kind, with few and with many.

Measured with a few rows in an otherwise empty database, then with many, with the few of the other team beside
them in turns. A repetition is a short load on two connections, so that what is timed is the request and not
the queue before it; a result is the median of its repetitions.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from bench.kit import load
from bench.kit.results import Report, at_most
from bench.kit.server import KEY, Server

CONNECTIONS = 2

Team = tuple[str, str]
"""A team's id, and a key of it."""


class Growth(NamedTuple):
    """What grows, and what is asked for. `grow` fills a team, `paths` samples each kind of request."""

    noun: str
    few: int
    many: int
    grow: Callable[[Server, str, int], None]
    paths: Callable[[Server, str], Mapping[str, Sequence[str]]]


def compare(report: Report, server: Server, growth: Growth) -> Team:
    """Report each kind at both sizes, and their ratio; returns the team that has many."""
    small = (str(server.sql("SELECT id FROM teams")[0][0]), KEY)
    big = server.make_team("big")
    growth.grow(server, small[0], growth.few)
    repeats = range(1 if report.short else 3)
    alone = [_repetition(report, server, small, growth) for _ in repeats]
    growth.grow(server, big[0], growth.many)
    beside, full = [], []
    for _ in repeats:
        beside.append(_repetition(report, server, small, growth))
        full.append(_repetition(report, server, big, growth))
    for kind in alone[0]:
        few = statistics.median(found[kind] for found in alone)
        beside_busy = statistics.median(found[kind] for found in beside)
        lot = statistics.median(found[kind] for found in full)
        report.result(f"{kind}, {growth.few:,} {growth.noun}, p99", few, "ms")
        note = f"small team beside: {beside_busy:.2f} ms"
        report.result(f"{kind}, {growth.many:,} {growth.noun}, p99", lot, "ms", note=note)
        report.result(f"{kind}, ratio of the two", lot / few, "×", at_most(1.5))
    return big


def _repetition(report: Report, server: Server, team: Team, growth: Growth) -> dict[str, float]:
    """The p99 of each kind of request for this team."""
    seconds = 2 if report.short else 6
    team_id, key = team
    found = {}
    for number, (kind, paths) in enumerate(growth.paths(server, team_id).items()):
        requests = load.reads(report.folder / f"{growth.noun}{number}.txt", paths)
        load.wrk(server, requests, connections=CONNECTIONS, seconds=1, threads=1, key=key)
        answered = load.wrk(server, requests, connections=CONNECTIONS, seconds=seconds, threads=1, key=key)
        if answered.trouble:
            report.fault(f"{kind}: {answered.trouble}")
        found[kind] = answered.p99
    return found
