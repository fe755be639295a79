"""The pages of who unsubscribes, as the dashboard draws them."""

from __future__ import annotations

from typing import Protocol

from pillarbox.kernel.http.request import Html, Reply
from pillarbox.unsubscribe.choices import Preferences, UnsubscribeOutcome


class UnsubscribeScreens(Protocol):
    """Draws the pages; the dashboard gives it."""

    def speak(self, accepted: str | None) -> None:
        """Set the language of the request's pages by its header Accept-Language."""
        ...

    def preferences(self, shown: Preferences) -> Reply[Html]: ...

    def outcome(self, done: UnsubscribeOutcome) -> Reply[Html]:
        """Show the changes that a form made, and how to take them back."""
        ...

    def unknown(self) -> Reply[Html]: ...

    def not_understood(self) -> Reply[Html]: ...

    def too_many(self, seconds: int) -> Reply[Html]: ...
