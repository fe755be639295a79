"""Which TLS a session asks for, and what is tried when a handshake fails (TLS-01, TLS-03)."""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox.kernel.clock import Clock
from pillarbox.mail.smtp.client import TlsMode
from pillarbox.mail.smtp.mta_sts import Policy

BROKEN_KEPT = {TlsMode.OPPORTUNISTIC: 3 * 24 * 3600.0, TlsMode.VERIFIED: 3600.0}
"""For how long a handshake that failed is not tried again where something less may follow (TLS-01)."""

MOST_BROKEN = 10_000


class TlsModes:
    """Chooses modes of TLS by host; skips handshakes that failed lately."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._broken: dict[tuple[str, TlsMode], float] = {}

    def choose(self, host: str, tls_mode: TlsMode, policy: Policy | None) -> Sequence[TlsMode]:
        """Return the TLS modes to try in turn: the first, and after it those for when the handshake fails
        (TLS-01, TLS-03)."""
        modes = [tls_mode, TlsMode.NONE] if tls_mode is TlsMode.OPPORTUNISTIC else [tls_mode]
        policy_mode = policy.mode if policy is not None else "none"
        if policy_mode == "enforce":
            return [TlsMode.VERIFIED]
        if policy_mode == "testing":
            modes.insert(0, TlsMode.VERIFIED)
        now = self._clock.boottime()
        return [m for m in modes[:-1] if self._broken.get((host, m), 0.0) <= now] + modes[-1:]

    def note_broken(self, host: str, mode: TlsMode) -> None:
        """Note that a handshake with this host has failed."""
        if mode in BROKEN_KEPT:
            if len(self._broken) >= MOST_BROKEN:
                self._broken.clear()
            self._broken[host, mode] = self._clock.boottime() + BROKEN_KEPT[mode]
