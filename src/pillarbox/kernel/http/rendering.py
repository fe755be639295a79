"""The bytes that every answer has in common: standing headers and the error body."""

from __future__ import annotations

from functools import lru_cache
from uuid import UUID

import msgspec

from pillarbox.kernel.http.request import JSON, Reply, Request, merged
from pillarbox.kernel.security.rate_limit import WindowState
from pillarbox.kernel.wire.problems import Problem

_STANDING = (
    (b"server", b"pillarbox"),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)
_JSON_TYPE = (b"content-type", JSON.encode())
_HSTS = (b"strict-transport-security", b"max-age=31536000")


_PLAIN = b"".join(
    [b"%b: %b\r\n" % pair for pair in (_JSON_TYPE, (b"content-length", b"%d"), *_STANDING)]
    + [b"x-request-id: %b\r\n"]
)


class ErrorBody(msgspec.Struct):
    """The body of every error, in this order (contract decision 1)."""

    status: int = msgspec.field(name="statusCode")
    message: str
    name: str


def problem_body(problem: Problem) -> bytes:
    """Return the error body of a problem."""
    return msgspec.json.encode(ErrorBody(problem.status, problem.message, problem.name))


def problem_reply(problem: Problem) -> Reply:
    """Return the answer to a problem."""
    return Reply(problem_body(problem), problem.status, problem.headers)


def standing_headers(request_id: UUID, size: int, media: str = JSON) -> list[tuple[bytes, bytes]]:
    """Return the headers of an answer that knows no request: refused before its head could be read."""
    return [
        _JSON_TYPE if media is JSON else (b"content-type", media.encode("latin-1")),
        (b"content-length", b"%d" % size),
        *_STANDING,
        (b"x-request-id", str(request_id).encode()),
    ]


def answer_headers(request: Request, reply: Reply) -> list[tuple[bytes, bytes]]:
    """Return every header of an answer; a reply's own headers replace the standing ones."""
    headers = standing_headers(request.id, 0 if reply.streamed else len(reply.body), reply.media)
    if reply.status in (204, 304):
        headers = headers[2:]
    elif reply.streamed:
        del headers[1]  # its length is in the reply's own headers, or not known yet
    if request.rate is not None:
        headers += rate_headers(request.rate)
    if request.scope["scheme"] == "https":
        headers.append(_HSTS)
    return merged(headers, reply.headers)


def plain_lines(request: Request, reply: Reply) -> bytes | None:
    """Return the lines of `answer_headers` for an answer that adds nothing to the standing ones,
    else None."""
    if (
        reply.headers
        or reply.media is not JSON
        or reply.status in (204, 413)
        or type(reply.body) is not bytes
    ):
        return None
    if request.scope["scheme"] == "https":
        return None
    lines = _PLAIN % (len(reply.body), str(request.id).encode())
    return lines if request.rate is None else lines + rate_lines(request.rate)


@lru_cache(maxsize=4096)
def rate_lines(taken: WindowState) -> bytes:
    """Return the four headers as lines."""
    return b"".join([b"%b: %b\r\n" % pair for pair in rate_headers(taken)])


@lru_cache(maxsize=4096)
def rate_headers(taken: WindowState) -> tuple[tuple[bytes, bytes], ...]:
    """Return the four headers of conventions section 7."""
    return (
        (b"ratelimit-limit", b"%d" % taken.limit),
        (b"ratelimit-policy", b"%d;w=1" % taken.limit),
        (b"ratelimit-remaining", b"%d" % taken.remaining),
        (b"ratelimit-reset", b"%d" % taken.reset),
    )
