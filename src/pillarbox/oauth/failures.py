"""Errors as OAuth shows them: `{"error", "error_description"}` (RFC 6749, 5.2; oauth.md)."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct, field

from pillarbox.kernel.http.request import Reply
from pillarbox.kernel.http.routing import Failures
from pillarbox.kernel.wire.problems import Problem

NOT_KEPT: Final = {"cache-control": "no-store", "pragma": "no-cache"}
BASIC_CHALLENGE: Final = {"www-authenticate": 'Basic realm="pillarbox"'}

NAMES: Final = {429: "too_many_requests", 500: "server_error", 503: "temporarily_unavailable"}
"""The OAuth names of errors that are no part of OAuth; all others are `invalid_request`."""


class OAuthProblem(Problem):
    """An error of OAuth. `message` says in ASCII what is wrong."""

    status, name = 400, "invalid_request"


class InvalidRequest(OAuthProblem):
    pass


class InvalidClient(OAuthProblem):
    """At the endpoints where programs authenticate."""

    status, name = 401, "invalid_client"

    def __init__(self, message: str, *, with_basic: bool = False) -> None:
        super().__init__(message, BASIC_CHALLENGE if with_basic else None)


class UnknownClient(OAuthProblem):
    """At the endpoint that people are sent to, where nobody authenticates."""

    name = "invalid_client"


class InvalidGrant(OAuthProblem):
    name = "invalid_grant"


class UnauthorizedClient(OAuthProblem):
    name = "unauthorized_client"


class UnsupportedGrantType(OAuthProblem):
    name = "unsupported_grant_type"


class UnsupportedResponseType(OAuthProblem):
    name = "unsupported_response_type"


class InvalidScope(OAuthProblem):
    name = "invalid_scope"


class NotStored(OAuthProblem):
    """A fault of ours at the endpoint that people are sent to."""

    status, name = 503, "server_error"


class TooManyRequests(OAuthProblem):
    status, name = 429, "too_many_requests"

    def __init__(self, seconds: int) -> None:
        super().__init__("Too many requests. Please slow down.", {"retry-after": str(max(1, seconds))})


class OAuthError(Struct):
    error: str
    description: str = field(name="error_description")


def failure_reply(problem: Problem) -> Reply[OAuthError]:
    """Return the answer to a problem, whatever raised it."""
    name = problem.name if isinstance(problem, OAuthProblem) else NAMES.get(problem.status, "invalid_request")
    body = msgspec.json.encode(OAuthError(name, described(problem)))
    return Reply(body, problem.status, {**NOT_KEPT, **problem.headers})


def described(problem: Problem) -> str:
    """Return the text of a problem in the characters that RFC 6749 allows: no quotes, no backslash, ASCII."""
    text = problem.message.replace('"', "'").replace("\\", "/")
    return "".join(character if " " <= character <= "~" else "?" for character in text)


FAILURES: Final = Failures("OAuth", OAuthError, failure_reply)
