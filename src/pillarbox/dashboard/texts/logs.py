"""Texts of the screens of the log of requests."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "logs.title": "Logs",
    "logs.words": "requests, API calls, errors, answers",
    "logs.request": "Request",
    "logs.status": "Status",
    "logs.status.2xx": "2xx: done",
    "logs.status.4xx": "4xx: refused",
    "logs.status.5xx": "5xx: failed",
    "logs.method": "Method",
    "logs.path": "Path",
    "logs.agent": "Program",
    "logs.arrived": "Arrived",
    "logs.none": "No request yet",
    "logs.none.text": "Every request with an API key of this team is listed here, with what was answered.",
    "logs.none_fit": "No request fits",
    "logs.none_fit.text": "Try fewer filters, or a longer time.",
    "logs.none_fit.more": "None of the newest requests fits. Older ones are on the next page.",
    "log.title": "Request",
    "log.open": "Open what it made",
    "log.request_id": "Request id",
    "log.request": "Body of the request",
    "log.answer": "Answer",
    "log.no_body": "The request had no body.",
    "log.no_answer": "The answer had no body, or was a file.",
    "log.again": "Send it again",
    "log.is_masked": "Secrets and files are not kept in the log: put them in place of [redacted].",
}
