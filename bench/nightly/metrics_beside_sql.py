"""The first answer about metrics ÷ the bare statement over the same rollups, its rows dropped."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from bench import metrics
from bench.kit.results import Report
from bench.kit.server import serving
from bench.nightly.judging import Figure
from bench.nightly.measurement import Measurement, Turn

UTC_ASKED = Figure("metrics for the first time, UTC ÷ bare statement", more_is_better=False)
INDIA_ASKED = Figure("metrics for the first time, Kolkata ÷ bare statement", more_is_better=False)


@contextmanager
def asked(report: Report) -> Iterator[Turn]:
    with serving(report, report.folder / "data", roles="api") as server:
        end = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        lot, other = server.make_team("lot"), server.make_team("other")
        asyncio.run(metrics.grow(server, {lot[0]: metrics.FEW, other[0]: metrics.FEW}, end))
        unknown = metrics.Unknown(server, other[1], end)
        first, last = (end - timedelta(days=30)).date(), (end - timedelta(days=1)).date()
        path = f"/emails/metrics?start_date={first}&end_date={last}&dimensions=period,domain"

        def turn() -> dict[Figure, float]:
            utc = unknown.first(lot, path)
            india = unknown.first(lot, f"{path}&timezone=Asia/Kolkata")
            return {UTC_ASKED: utc.question / utc.bare, INDIA_ASKED: india.question / india.bare}

        yield turn


MEASUREMENTS: dict[str, Measurement] = {"metrics": Measurement(asked, (UTC_ASKED, INDIA_ASKED))}
