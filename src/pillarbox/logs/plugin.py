"""The slice of logs: the log of requests, and the routes under `/logs`."""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.observability.request_log import RequestLogWriter
from pillarbox.kernel.slices import Background, Container, Retention, RetentionItem, Slice, Stop
from pillarbox.logs import routes
from pillarbox.logs.personal_data import PERSONAL_DATA
from pillarbox.logs.policy import LogPolicy
from pillarbox.logs.retention import log_periodic
from pillarbox.logs.writing import RequestLog
from pillarbox.teams.settings import LOG_RETENTION_DAYS


def _background(kit: Container) -> Sequence[Background]:
    log = kit.need(RequestLog)
    return [Background(stop=(Stop.REQUEST_LOG, lambda _: log.drain()))]


SLICE = Slice(
    name="logs",
    provides={
        LogPolicy: lambda kit: LogPolicy(kit.settings[LOG_RETENTION_DAYS]),
        RequestLog: lambda kit: RequestLog(kit.pool, kit.clock, kit.need(LogPolicy)),
        RequestLogWriter: lambda kit: kit.need(RequestLog),
    },
    routes=collect(routes),
    retention=[
        Retention(
            [RetentionItem("rows of the log of API requests", LOG_RETENTION_DAYS, True)],
            lambda kit: log_periodic(kit.pool, kit.clock, kit.need(LogPolicy)),
        )
    ],
    background=_background,
    personal_data=PERSONAL_DATA,
    loops=lambda kit: [kit.need(RequestLog).run()],
)
