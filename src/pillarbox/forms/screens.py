"""The pages of sign-ups, as the dashboard draws them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from pillarbox.forms.sign_up_pages import ShownForm
from pillarbox.kernel.http.request import Html, Reply


@dataclass(frozen=True, slots=True)
class ConfirmationMail:
    """The words of the mail that asks for the click."""

    subject: str
    html: str
    text: str


class SignUpScreens(Protocol):
    """Draws the pages and writes the mail; the dashboard gives it."""

    def speak(self, accepted: str | None) -> None:
        """Set the language of the request's pages by its header Accept-Language."""
        ...

    def form(
        self, form: ShownForm, given: Mapping[str, str] | None = None, wrong: Mapping[str, str] | None = None
    ) -> Reply[Html]:
        """Show a form, with what was typed and what is wrong with it by the names of its fields."""
        ...

    def consent_text(self, form: ShownForm) -> str:
        """Return all words that stand beside the button, as they are kept with a consent."""
        ...

    def mail(self, form: ShownForm, url: str, email: str) -> ConfirmationMail: ...

    def sent(self, form: ShownForm) -> Reply[Html]: ...

    def confirm(self, form: ShownForm, email: str) -> Reply[Html]:
        """Show the one button that confirms."""
        ...

    def confirmed(self, form: ShownForm) -> Reply[Html]: ...

    def expired(self, form: ShownForm, url: str | None) -> Reply[Html]: ...

    def unknown(self) -> Reply[Html]: ...

    def not_understood(self) -> Reply[Html]: ...

    def too_many(self, seconds: int) -> Reply[Html]: ...

    def unavailable(self) -> Reply[Html]: ...
