"""Codes of JSON-RPC errors, and the HTTP status of each."""

from __future__ import annotations

from typing import Any, Final

from pillarbox.kernel.wire.problems import Problem

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
HEADER_MISMATCH: Final = -32020
UNSUPPORTED_VERSION: Final = -32022
REFUSED: Final = -32000
"""Of the codes that a server may choose: refused before there was a message, such as 401."""

STATUSES: Final = {METHOD_NOT_FOUND: 404}
"""In the version of 2026-07-28; the others are 400."""


class RpcFailure(Exception):  # noqa: N818 (an answer, as a Problem is)
    """The method has no result; carries what JSON-RPC shows."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class NotAMessage(Problem):
    """A body that is no single message of JSON-RPC."""

    status, name = 400, "validation_error"

    def __init__(self) -> None:
        super().__init__("The body must be one JSON-RPC request or notification.")


class ForeignOrigin(Problem):
    status, name = 403, "validation_error"

    def __init__(self) -> None:
        super().__init__(
            "Pages of other sites may not call this endpoint: the `Origin` is not this server's."
        )


class UnknownBearer(Problem):
    """A wrong API key: clients of MCP look for where to get a credential only where the status is 401."""

    status, name = 401, "invalid_api_key"

    def __init__(self, challenge: str) -> None:
        super().__init__("API key is invalid", {"www-authenticate": challenge})
