"""The page of a tracked link that leads nowhere, as the dashboard draws it."""

from __future__ import annotations

from typing import Protocol

from pillarbox.kernel.http.request import Html, Reply


class TrackingScreens(Protocol):
    """Draws the page; the dashboard gives it."""

    def speak(self, accepted: str | None) -> None:
        """Set the language of the request's pages by its header Accept-Language."""
        ...

    def unknown_link(self) -> Reply[Html]: ...
