"""The limits and results of requests by `kernel.network.outbound`: an answer, or a `FetchError` that names
the kind of failure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

REDIRECTS = frozenset({301, 302, 303, 307, 308})

FAILURES = {
    "header": "The request has a header field that cannot be sent.",
    "url": "The URL is not a valid http or https URL.",
    "refused": "The URL leads to an address that must not be reached.",
    "dns": "The host name could not be resolved.",
    "connect": "No connection could be made.",
    "tls": "The TLS handshake failed.",
    "timeout": "The server did not answer in time.",
    "protocol": "The server did not give a complete HTTP answer.",
    "too_large": "The answer is too large.",
    "redirects": "The server redirected too often.",
}


class FetchError(Exception):
    """The request failed; `kind` is a key of FAILURES, the text is fit for the user's eyes."""

    def __init__(self, kind: str, message: str | None = None) -> None:
        super().__init__(message or FAILURES[kind])
        self.kind = kind


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """Bound one request. `total` are the seconds for all of it, redirects and the whole answer included.

    `connect` are the seconds until connected, TLS included; the look-up before has the resolver's own limit.
    A body of more than `max_bytes` is a failure; with `cut` it ends there and is not read on. Redirects are
    followed only by GET and HEAD. A connection is `kept` for so many seconds after its answer. With
    `is_head_enough` an answer ends at its head: for HEAD, and where no body is wanted.
    """

    max_bytes: int
    connect: float = 10.0
    total: float = 30.0
    redirects: int = 0
    cut: bool = False
    kept: float = 0.0
    is_head_enough: bool = False


class HttpAnswer(NamedTuple):
    """Hold an answer of any status; `cut` where its body went on beyond what was wanted."""

    status: int
    raw_headers: Sequence[tuple[bytes, bytes]]
    body: bytes
    cut: bool = False

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers by their names in lower case; repeated ones are joined by a comma."""
        flat: dict[str, str] = {}
        for raw_name, raw_value in self.raw_headers:
            name, value = raw_name.decode("latin-1").lower(), raw_value.decode("utf-8", "surrogateescape")
            flat[name] = f"{flat[name]}, {value}" if name in flat else value
        return flat
