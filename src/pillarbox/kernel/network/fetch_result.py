"""What a fetch of `kernel.network.outbound` gives back: an answer, or a `FetchError` that names the kind of
failure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

REDIRECTS = frozenset({301, 302, 303, 307, 308})

FAILURES = {
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
    """The fetch failed; `kind` is a key of FAILURES, the text is fit for the user's eyes."""

    def __init__(self, kind: str, message: str | None = None) -> None:
        super().__init__(message or FAILURES[kind])
        self.kind = kind


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer of any status. Header names are in lower case, repeated ones joined by a comma."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    cut: bool = False


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """What one fetch may take."""

    connect: float
    most_bytes: int
    cut: bool
    redirected: bool
