"""The answer to an exception. Every unexpected one is 500 `application_error`."""

from __future__ import annotations

import asyncpg

from pillarbox.kernel.http.rendering import problem_reply
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import RouteTable, WrongHost
from pillarbox.kernel.observability import log
from pillarbox.kernel.postgres.database import GONE, problem_of
from pillarbox.kernel.security.secrets import KeyRingError
from pillarbox.kernel.storage.blobs import BlobFailed, BlobsSilent, BlobsUnreachable
from pillarbox.kernel.storage.store_check import BlobStoreGone
from pillarbox.kernel.wire.problems import (
    Invalid,
    MethodNotAllowed,
    Problem,
    ResourceLocked,
    ServerOverloaded,
)

FULL_SECONDS = 10
KEY_SECONDS = 60
LOCKED = (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError, asyncpg.SerializationError)
FULL = (BlobFailed, asyncpg.InsufficientResourcesError)
"""No room, or a disk that cannot be trusted: nothing was accepted, and room may come back."""

UNSTORABLE = (asyncpg.DataError, UnicodeEncodeError)


def problem_for(failure: Exception, request_id: object) -> Problem:
    """Return the answer to a failure; unexpected ones are logged under the request's id, and the answer gives
    no detail."""
    if isinstance(failure, Problem):
        return failure
    if isinstance(failure, LOCKED):
        return ResourceLocked("Another request is changing this object right now. Try again.")
    if isinstance(failure, GONE):
        log.get("http").warning("http.database_gone", request=str(request_id), error=type(failure).__name__)
        return problem_of(failure)
    if isinstance(failure, BlobsSilent):
        log.get("http").error("http.storage_silent", request=str(request_id))
        return ServerOverloaded("The storage does not answer right now. Try again later.", FULL_SECONDS)
    if isinstance(failure, BlobsUnreachable):
        log.get("http").error("http.blob_store_gone", request=str(request_id), reason=failure.reason)
        return BlobStoreGone()
    if isinstance(failure, FULL):
        log.get("http").error("http.storage_full", request=str(request_id), error=type(failure).__name__)
        return ServerOverloaded("There is no room to store this right now. Try again later.", FULL_SECONDS)
    if isinstance(failure, KeyRingError):
        log.get("http").error("http.key_missing", request=str(request_id), trouble=str(failure))
        return ServerOverloaded("This secret cannot be decrypted right now. Try again later.", KEY_SECONDS)
    if isinstance(failure, UNSTORABLE):
        log.get("http").warning("http.unstorable", request=str(request_id), error=type(failure).__name__)
        return Invalid("A value of the request cannot be stored.")
    log.get("http").error("http.failed", request=str(request_id), exc_info=failure)
    return Problem("Something went wrong on our side. Try again later.")


def failed(request: Request, table: RouteTable, problem: Problem) -> Reply:
    """Return the answer to a problem: a page where a browser asked for one, else as the route says."""
    raw_path = request.scope["raw_path"].decode("latin-1")
    if isinstance(problem, MethodNotAllowed):
        request.shared = table.is_shared(raw_path)
    has_pages = not isinstance(problem, WrongHost) and _is_for_browser(request)
    if has_pages and (screen := table.screen(raw_path)) is not None:
        return screen(request, problem)
    return request.failures.reply(problem) if request.failures else problem_reply(problem)


def _is_for_browser(request: Request) -> bool:
    try:
        return prefers_html(request.header("accept"))
    except Problem:
        # Headers that may not be read are what the problem is about.
        return False


def prefers_html(accept: str | None) -> bool:
    """Return whether an Accept header names text/html before JSON."""
    qualities = {"text/html": 0.0, "application/json": 0.0}
    for part in (accept or "").lower().split(","):
        media, *options = (text.strip() for text in part.split(";"))
        quality = next((text[2:] for text in options if text.startswith("q=")), "1")
        if media in qualities:
            qualities[media] = _number(quality)
    return qualities["text/html"] > qualities["application/json"]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
