"""Which messages are valid in each version of the protocol. Importing this loads the types of MCP: 200 ms
of CPU, 24 MB."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from mcp_types import methods
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from pillarbox.mcp.codes import INVALID_PARAMS, METHOD_NOT_FOUND, RpcFailure

HANDSHAKE: Final = HANDSHAKE_PROTOCOL_VERSIONS
"""Versions in which a client begins with `initialize`."""

LATEST_HANDSHAKE: Final = LATEST_HANDSHAKE_VERSION
STATELESS: Final = MODERN_PROTOCOL_VERSIONS
"""Versions in which each request says by itself what it needs."""

LONGEST_METHOD: Final = 100
MOST_KNOWN: Final = 1000
LONGEST_KNOWN: Final = 2000
ARGUMENTS: Final = "arguments"

_encode = msgspec.json.Encoder().encode
MOST_FAULTS: Final = 3


class CheckedCalls:
    """Remembers which calls are right but for their arguments: a client sends the same marks each time, and
    comparing them with the types takes as long as a small query."""

    def __init__(self) -> None:
        self._known: set[tuple[str, bytes]] = set()

    def check(self, version: str, params: dict[str, Any] | None) -> None:
        """Raise where the parameters of `tools/call` have another shape."""
        given = params or {}
        key = version, _encode({name: value for name, value in given.items() if name != ARGUMENTS})
        if key in self._known and isinstance(given.get(ARGUMENTS, {}), dict):
            return
        check_request("tools/call", version, params)
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        if len(key[1]) <= LONGEST_KNOWN:
            self._known.add(key)


def check_request(method: str, version: str, params: dict[str, Any] | None) -> None:
    """Raise where the version has no such method, or its parameters have another shape."""
    try:
        methods.validate_client_request(method, version, params)
    except KeyError:
        raise RpcFailure(METHOD_NOT_FOUND, f"Unknown method `{method[:LONGEST_METHOD]}`.") from None
    except ValidationError as wrong:
        raise RpcFailure(INVALID_PARAMS, f"Invalid parameters: {_faults(wrong)}") from None


def _faults(wrong: ValidationError) -> str:
    """Return where the parameters are wrong, without the values, which may be secret or long."""
    faults = wrong.errors(include_url=False, include_context=False, include_input=False)[:MOST_FAULTS]
    return "; ".join(
        f"{'.'.join(str(part)[:60] for part in fault['loc'])}: {fault['msg'][:200]}" for fault in faults
    )
