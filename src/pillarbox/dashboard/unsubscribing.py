"""The pages on which people leave a topic or everything, and choose what they get (unsubscribe.md).

They need no script, and name no product: people do not know who sends the mail for those who write to them.
Title, texts, logo and colours are those of the team (docs/decisions/0171).
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from markupsafe import Markup

from pillarbox.dashboard import pages
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.unsubscribe.choices import Preferences, UnsubscribeOutcome
from pillarbox.unsubscribe.colors import BLACK, WHITE, contrast, readable_on
from pillarbox.unsubscribe.forms import UnsubscribeAction
from pillarbox.unsubscribe.page_settings import DEFAULT, UnsubscribePageSettings

HEADERS: Final = {
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "x-robots-tag": "noindex",
}
TITLE: Final = "Email preferences"
MOST_MASKED: Final = 64

COLORS: Final = (
    ":root {{ color-scheme: {scheme}; --page: {page}; --card: {page}; --hover: {page}; --ink: {text}; "
    "--soft: {text}; --line: {text}; --link: {button}; --accent: {text} }}\n"
    ".recipient button.main {{ color: {on_button} }}\n"
    ".recipient button.main:hover {{ color: {page} }}\n"
)
"""The style sheet of a page with colours of its own."""


@dataclass(frozen=True, slots=True)
class Button:
    """A form of hidden fields with one button."""

    text: str
    fields: tuple[tuple[str, str], ...]
    topic: str | None = None
    """Its name follows the text."""


class UnsubscribePages:
    """Draws the pages."""

    def preferences(self, shown: Preferences) -> Reply[Html]:
        return _page(shown.settings.title or TITLE, shown, _leave_or_return(shown))

    def outcome(self, done: UnsubscribeOutcome) -> Reply[Html]:
        lines = _said(done)
        title = f"{''.join(lines[0])} · {done.now.settings.title or TITLE}"
        # What takes it back stands right below what was done.
        is_said = done.left_all or _is_about_topic(done)
        button = None if is_said else _leave_or_return(done.now)
        return _page(title, done.now, button, lines, _undo(done))

    def unknown(self) -> Reply[Html]:
        return _message(
            "There is nothing behind this link", "It may be incomplete: copy the whole of it.", 404
        )

    def unknown_link(self) -> Reply[Html]:
        return self.unknown()

    def not_understood(self) -> Reply[Html]:
        return _message("Nothing was changed", "Open the link of the mail again and use its buttons.", 400)

    def too_many(self, seconds: int) -> Reply[Html]:
        reply = _message("Too many requests", "Nothing was changed. Try again in a minute.", 429)
        reply.headers["retry-after"] = str(seconds)
        return reply


def policy_of(settings: UnsubscribePageSettings, frame_ancestors: str = "'none'") -> str:
    """Return the Content-Security-Policy: style sheets by their hash, and pictures of the logo's origin."""
    styles = f"'sha256-{pages.STYLES_HASH}'"
    if colors := colors_of(settings):
        styles += f" 'sha256-{b64encode(sha256(colors.encode()).digest()).decode('ascii')}'"
    images = f"data: {settings.logo_origin}".rstrip()
    return (
        f"default-src 'none'; style-src {styles}; img-src {images}; form-action 'self'; base-uri 'none'; "
        f"frame-ancestors {frame_ancestors}"
    )


def colors_of(settings: UnsubscribePageSettings) -> str:
    """Return the style sheet with the team's colours; empty where it has chosen none."""
    if not settings.has_colors:
        return ""
    page, text, button = settings.colors
    is_dark = contrast(page, WHITE) > contrast(page, BLACK)
    return COLORS.format(
        scheme="dark" if is_dark else "light",
        page=page,
        text=text,
        button=button,
        on_button=readable_on(button),
    )


def masked(address: str) -> str:
    """Return as much of an address as its owner needs to recognise it."""
    local, _, domain = address.rpartition("@")
    return f"{local[:1]}…@{domain[:MOST_MASKED]}{'…' if len(domain) > MOST_MASKED else ''}"


Line = tuple[str, str, str]
"""A sentence: what stands before the name of a topic, the name, and what stands after it."""


def _said(done: UnsubscribeOutcome) -> list[Line]:
    """Return the changes as sentences."""
    lines: list[Line] = []
    if done.left_all:
        lines.append(("You are unsubscribed from everything. You will get no more of these mails.", "", ""))
    if done.came_back:
        lines.append(("You are subscribed again.", "", ""))
    lines += [("You will get no more mail about ", topic.name, ".") for topic in done.left]
    lines += [("You will get mail about ", topic.name, ".") for topic in done.joined]
    if not lines:
        lines.append(("Your choices are saved; nothing is different from before.", "", ""))
    if done.action is UnsubscribeAction.PREFERENCES and done.now.is_unsubscribed:
        text = "You are still unsubscribed from everything, so you get no mail until you subscribe again."
        lines.append((text, "", ""))
    return lines


def _undo(done: UnsubscribeOutcome) -> list[Button]:
    """Return the form that takes a submission back: the choices as they were before."""
    if done.left_all:
        return [Button("Undo", (("action", "resubscribe"),))]
    left = [("topic", str(topic.id)) for topic in done.left]
    if done.left and not done.joined and not done.now.is_unsubscribed:
        return [Button("Undo", (("action", "resubscribe"), *left))]
    buttons = []
    changed = [*done.left, *done.joined]
    if changed:
        shown = [("shown", str(topic.id)) for topic in changed]
        buttons.append(Button("Undo", (("action", "preferences"), *shown, *left)))
    if done.came_back:
        buttons.append(Button("Unsubscribe from everything again", (("action", "all"),)))
    return buttons


def _page(
    title: str,
    shown: Preferences,
    button: Button | None,
    lines: Sequence[Line] = (),
    undo: Sequence[Button] = (),
) -> Reply[Html]:
    settings = shown.settings
    return pages.page(
        "unsubscribe.html",
        headers={**HEADERS, "content-security-policy": policy_of(settings)},
        title=title,
        heading=settings.title or TITLE,
        settings=settings,
        colors=Markup(colors_of(settings)),  # noqa: S704 (colours that were checked, in our own text)
        address=masked(shown.address),
        shown=shown,
        lines=lines,
        undo=undo,
        is_shown=bool(shown.topic or shown.topics),
        button=button,
    )


def _is_about_topic(done: UnsubscribeOutcome) -> bool:
    topic = done.now.topic
    return topic is not None and any(topic.id == changed.id for changed in (*done.left, *done.joined))


def _leave_or_return(shown: Preferences) -> Button | None:
    """Return the main button: out of what the mail was about, or back into it."""
    topic = shown.topic
    if shown.is_unsubscribed:
        return Button("Subscribe again", (("action", "resubscribe"),))
    if topic is None:
        return None if shown.topics else Button("Unsubscribe", (("confirm", "1"),))
    if topic.is_subscribed:
        return Button("Unsubscribe from", (("confirm", "1"),), topic.name)
    return Button("Subscribe again to", (("action", "resubscribe"), ("topic", str(topic.id))), topic.name)


def _message(title: str, text: str, status: int) -> Reply[Html]:
    headers = {**HEADERS, "content-security-policy": policy_of(DEFAULT)}
    return pages.page(
        "unsubscribe_message.html", status=status, headers=headers, title=title, text=text, colors=""
    )
