"""The lines that `pillarbox serve` writes to standard output.

For programs: at the first start a line `api key …` and a line `set-up …`, with the route capture a line
`capture …`, and the line `ready …` with all listeners. On a terminal the same in words, with what to do next.
All else is in the log.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import pillarbox
from pillarbox.kernel.network.listeners import HTTP, LMTP, SMTP
from pillarbox.kernel.settings.kinds import HostPort, ProcessRole, RouteKind
from pillarbox.kernel.settings.settings import Settings

WILDCARDS = ("0.0.0.0", "::")  # noqa: S104
NAMES = {"http": "API", "smtp": "SMTP", "submission": "Submission", "lmtp": "LMTP", "metrics": "Metrics"}
WIDTH = 11
CHECKOUT = Path(pillarbox.__file__).parents[2]
EXPLANATIONS = {
    RouteKind.CAPTURE: "No mail leaves this machine: it is kept under the Captured link.",
    RouteKind.DIRECT: "Mail is delivered to the servers of its recipients.",
    RouteKind.RELAY: "Mail is handed to the server of --route.",
}


@dataclass(frozen=True, slots=True)
class OpenedListeners:
    """The listeners and addresses of a start; `settings` hold the ports that the system chose."""

    settings: Settings
    names: Collection[str]
    metrics: str | None
    capture_token: str

    def addresses(self) -> Sequence[tuple[str, str]]:
        """Return the name and address of each kind of listener."""
        settings = self.settings
        found = [(HTTP, str(settings.http))] if HTTP in self.names else []
        if SMTP in self.names:
            found.append((SMTP, str(settings.smtp)))
        if settings.submission and ProcessRole.SMTP in settings.roles:
            found.append(("submission", ",".join(map(str, settings.submission))))
        if LMTP in self.names:
            found.append((LMTP, str(settings.lmtp)))
        return [*found, ("metrics", self.metrics)] if self.metrics else found

    def capture_link(self) -> str | None:
        """Return where a browser reads captured mail; the token is new at every start."""
        if self.settings.route.kind is not RouteKind.CAPTURE or HTTP not in self.names:
            return None
        return f"{self.base_url()}/capture?token={self.capture_token}"

    def set_up_link(self, token: str) -> str | None:
        """Return where the owner of a new installation makes an account. A browser keeps the session's cookie
        under a loopback name, or over HTTPS."""
        if HTTP not in self.names:
            return None
        settings = self.settings
        base = settings.public_url if "public_url" in settings.given else local_url(settings)
        return f"{base}/set-up/{token}"

    def base_url(self) -> str:
        """Return the URL that others than this machine know, where they may look (it may be a container)."""
        settings = self.settings
        return settings.public_url if "capture_networks" in settings.given else local_url(settings)


class Announcement:
    """Writes the lines for the operator; `is_terminal` where a person reads them."""

    def __init__(self, is_terminal: bool) -> None:
        self.is_terminal = is_terminal
        self._key: str | None = None
        self._set_up: str | None = None
        self._folder_is_said = False

    def making_database(self, folder: Path) -> None:
        """Say that the database is being made, which takes seconds."""
        if self.is_terminal:
            self._folder_is_said = True
            say(f"Making the database in {folder} …")

    def key_made(self, key: str) -> None:
        """Print the key at once: an operator who ends the start now has no second chance to read it."""
        self._key = key
        if self.is_terminal:
            say(line("API key", f"{key}  (shown only now)"))
        else:
            say(f"api key {key} (shown only now; keep it)")

    def set_up_made(self, token: str) -> None:
        """Keep the token of the set-up link, which is said when its address is known."""
        self._set_up = token

    def ready(self, listening: OpenedListeners) -> None:
        """Say that all listeners are open."""
        if self.is_terminal:
            self._tell(listening)
            return
        if self._set_up and (link := listening.set_up_link(self._set_up)):
            say(f"set-up {link} (works once; for the owner's account)")
        if link := listening.capture_link():
            say(f"capture {link}")
        say(" ".join(["ready", *(f"{name}={at}" for name, at in listening.addresses())]))

    def stopping(self) -> None:
        if self.is_terminal:
            say("\nStopping: what is on its way is finished first. Ctrl-C again stops at once.")

    def abandoned(self) -> None:
        if self.is_terminal:
            say("\nStopped at once; the next start goes on with what was committed.")

    def _tell(self, listening: OpenedListeners) -> None:
        settings = listening.settings
        for name, at in listening.addresses():
            text = listening.base_url() if name == HTTP else at
            login = "  (user resend, password: the API key)" if name == "submission" else ""
            say(line(NAMES[name], text + login))
        if self._set_up and (link := listening.set_up_link(self._set_up)):
            say(line("Set up", link))
        if link := listening.capture_link():
            say(line("Captured", link))
        if not self._folder_is_said:
            say(line("Data", str(settings.data)))
        say(f"Ready. {EXPLANATIONS[settings.route.kind]}")
        if self._key is None:
            say("Ctrl-C stops it.")
        else:
            say("Send a first mail from another terminal (Ctrl-C in this one stops Pillarbox):")
            say(f"  RESEND_API_KEY={self._key} {command_line(settings)}")


def line(name: str, text: str) -> str:
    return f"{name:<{WIDTH}}{text}"


def command_line(settings: Settings) -> str:
    """Return how this installation is told to send a mail, from the folder where it was started."""
    script = CHECKOUT / "script" / "pillarbox"
    program = os.path.relpath(script) if script.exists() else "pillarbox"
    folder = f" --data {settings.data}" if "data" in settings.given else ""
    return f"{program} send{folder}"


def local_url(settings: Settings) -> str:
    """Return the URL of the HTTP listener on this machine."""
    scheme = "https" if settings.tls_cert else "http"
    host = "127.0.0.1" if settings.http.host in WILDCARDS else settings.http.host
    return f"{scheme}://{HostPort(host, settings.http.port)}"


def is_terminal() -> bool:
    """Return whether standard output is read by a person."""
    return sys.stdout.isatty()


def say(text: str) -> None:
    """Write one line to standard output at once; a closed pipe is ignored."""
    with contextlib.suppress(BrokenPipeError):
        print(text, flush=True)
