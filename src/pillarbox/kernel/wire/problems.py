"""Errors as the wire shows them: `{"statusCode", "message", "name"}` (conventions section 5).

A problem is raised anywhere below the HTTP pipeline and rendered once, by `http`. Its wire name is written
down here, never derived from the class.
"""

from __future__ import annotations


class Problem(Exception):  # noqa: N818 - a problem is an answer, its wire name is written down
    """An answer other than 2xx that the caller earned; carries what the wire needs."""

    status: int = 500
    name: str = "application_error"

    def __init__(self, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.headers = headers or {}


class Invalid(Problem):
    """A field, query value or combination that the contract refuses."""

    status, name = 422, "validation_error"


class MissingField(Problem):
    status, name = 422, "missing_required_field"

    def __init__(self, field: str) -> None:
        super().__init__(f"Missing `{field}` field.")


def at_index(index: int, problem: Problem) -> Problem:
    """Return the problem as one of an item of a batch."""
    named = Problem(f"[{index}] {problem.message}", problem.headers)
    named.status, named.name = problem.status, problem.name
    return named


class MissingParameter(Problem):
    status, name = 422, "missing_required_parameter"

    def __init__(self, parameter: str) -> None:
        super().__init__(f"Missing `{parameter}` parameter.")


class InvalidField(Invalid):
    """A body field with a bad value; `reason` is a sentence."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"Invalid `{field}` field. {reason}")


class InvalidParameter(Invalid):
    """A query parameter with a bad value; `reason` is a sentence."""

    def __init__(self, parameter: str, reason: str) -> None:
        super().__init__(f"Invalid `{parameter}` parameter. {reason}")


class NotAUuid(Problem):
    status, name = 422, "invalid_parameter"

    def __init__(self, parameter: str) -> None:
        super().__init__(f"The `{parameter}` must be a valid UUID.")


class InvalidAttachment(Problem):
    status, name = 422, "invalid_attachment"


class BadRequest(Problem):
    """A body that is not JSON, or framing that cannot be trusted."""

    status, name = 400, "validation_error"


class Forbidden(Problem):
    """A rule about who may send as whom."""

    status, name = 403, "validation_error"


class NotFound(Problem):
    """An unknown, deleted or foreign resource; the three look the same."""

    status, name = 404, "not_found"

    def __init__(self, resource: str) -> None:
        super().__init__(f"{resource} not found")


class MethodNotAllowed(Problem):
    status, name = 405, "method_not_allowed"


class Conflict(Problem):
    """The state of the resource forbids it."""

    status, name = 409, "conflict"


class ResourceLocked(Problem):
    """A row lock could not be had in time (conventions section 15)."""

    status, name = 409, "resource_locked"


class ConcurrentIdempotentRequest(Problem):
    status, name = 409, "concurrent_idempotent_requests"

    def __init__(self) -> None:
        super().__init__("A request with this idempotency key is still running. Try again later.")


class IdempotencyMismatch(Problem):
    status, name = 409, "invalid_idempotent_request"

    def __init__(self) -> None:
        super().__init__("This idempotency key was already used with a different request body.")


class InvalidIdempotencyKey(Problem):
    status, name = 400, "invalid_idempotency_key"

    def __init__(self) -> None:
        super().__init__("The `Idempotency-Key` must have 1 to 256 printable ASCII characters.")


class TooLarge(Problem):
    status, name = 413, "validation_error"


class UnsupportedBody(Problem):
    """A content type or transfer encoding that this route does not take."""

    status, name = 415, "validation_error"


class RateLimited(Problem):
    status, name = 429, "rate_limit_exceeded"


class ServerOverloaded(Problem):
    """This process holds as much as it may; nothing was stored (architecture 6.5)."""

    status, name = 503, "service_unavailable"

    def __init__(self, message: str, retry_after: int = 1) -> None:
        super().__init__(message, {"retry-after": str(retry_after)})


class DatabaseGone(ServerOverloaded):
    """The database does not answer; nothing was accepted."""

    def __init__(self, message: str = "The service is not available right now. Try again later.") -> None:
        super().__init__(message)


class NoConnectionLeft(DatabaseGone):
    """The database works and takes no more connections; nothing was accepted."""

    def __init__(self) -> None:
        super().__init__("The database takes no more connections right now. Try again later.")


class OutcomeUnknown(DatabaseGone):
    """The database went away during the commit: the request may have been carried out."""

    def __init__(self) -> None:
        super().__init__(
            "The service did not answer in time, and it is not known whether this request was carried out. "
            "Where it had an `Idempotency-Key`, repeating it with the same key is safe."
        )
