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
from pillarbox.dashboard.texts import t, use_language
from pillarbox.dashboard.texts.languages import language
from pillarbox.documents.colors import BLACK, WHITE, contrast, readable_on
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.unsubscribe.choices import Preferences, UnsubscribeOutcome
from pillarbox.unsubscribe.forms import UnsubscribeAction
from pillarbox.unsubscribe.page_settings import DEFAULT, UnsubscribePageSettings

HEADERS: Final = {
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "x-robots-tag": "noindex",
}
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
    topic: str = ""
    """The name of a topic, which follows the text."""

    after: str = ""
    """The end of the text, behind the name."""


class UnsubscribePages:
    """Draws the pages."""

    def speak(self, accepted: str | None) -> None:
        use_language(None, accepted)

    def preferences(self, shown: Preferences) -> Reply[Html]:
        settings = shown.settings.in_language(language())
        return _page(settings.title or t("unsubscribe.title"), shown, _leave_or_return(shown))

    def outcome(self, done: UnsubscribeOutcome) -> Reply[Html]:
        lines = _said(done)
        settings = done.now.settings.in_language(language())
        title = f"{''.join(lines[0])} · {settings.title or t('unsubscribe.title')}"
        # What takes it back stands right below what was done.
        is_said = done.left_all or _is_about_topic(done)
        button = None if is_said else _leave_or_return(done.now)
        return _page(title, done.now, button, lines, _undo(done))

    def unknown(self) -> Reply[Html]:
        return _message(t("recipient.no_link"), t("recipient.no_link.text"), 404)

    def unknown_link(self) -> Reply[Html]:
        return self.unknown()

    def not_understood(self) -> Reply[Html]:
        return _message(t("unsubscribe.not_understood"), t("unsubscribe.not_understood.text"), 400)

    def too_many(self, seconds: int) -> Reply[Html]:
        reply = _message(t("unsubscribe.too_many"), t("unsubscribe.too_many.text"), 429)
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
        lines.append((t("unsubscribe.left_all"), "", ""))
    if done.came_back:
        lines.append((t("unsubscribe.came_back"), "", ""))
    lines += [_about("unsubscribe.left", topic.name) for topic in done.left]
    lines += [_about("unsubscribe.joined", topic.name) for topic in done.joined]
    if not lines:
        lines.append((t("unsubscribe.nothing"), "", ""))
    if done.action is UnsubscribeAction.PREFERENCES and done.now.is_unsubscribed:
        lines.append((t("unsubscribe.still_out"), "", ""))
    return lines


def _about(key: str, topic: str) -> Line:
    """Return the sentence of a text with a topic."""
    before, _, after = t(key).partition("{topic}")
    return before, topic, after


def _topic_button(key: str, topic: str, *fields: tuple[str, str]) -> Button:
    before, name, after = _about(key, topic)
    return Button(before, fields, name, after)


def _undo(done: UnsubscribeOutcome) -> list[Button]:
    """Return the form that takes a submission back: the choices as they were before."""
    if done.left_all:
        return [Button(t("unsubscribe.undo"), (("action", "resubscribe"),))]
    left = [("topic", str(topic.id)) for topic in done.left]
    if done.left and not done.joined and not done.now.is_unsubscribed:
        return [Button(t("unsubscribe.undo"), (("action", "resubscribe"), *left))]
    buttons = []
    changed = [*done.left, *done.joined]
    if changed:
        shown = [("shown", str(topic.id)) for topic in changed]
        buttons.append(Button(t("unsubscribe.undo"), (("action", "preferences"), *shown, *left)))
    if done.came_back:
        buttons.append(Button(t("unsubscribe.all_again"), (("action", "all"),)))
    return buttons


def _page(
    title: str,
    shown: Preferences,
    button: Button | None,
    lines: Sequence[Line] = (),
    undo: Sequence[Button] = (),
) -> Reply[Html]:
    settings = shown.settings.in_language(language())
    return pages.page(
        "unsubscribe.html",
        headers={**HEADERS, "content-security-policy": policy_of(settings)},
        title=title,
        heading=settings.title or t("unsubscribe.title"),
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
        return Button(t("unsubscribe.again"), (("action", "resubscribe"),))
    if topic is None:
        return None if shown.topics else Button(t("unsubscribe.leave"), (("confirm", "1"),))
    if topic.is_subscribed:
        return _topic_button("unsubscribe.leave_topic", topic.name, ("confirm", "1"))
    fields = ("action", "resubscribe"), ("topic", str(topic.id))
    return _topic_button("unsubscribe.join_topic", topic.name, *fields)


def _message(title: str, text: str, status: int) -> Reply[Html]:
    headers = {**HEADERS, "content-security-policy": policy_of(DEFAULT)}
    return pages.page(
        "unsubscribe_message.html", status=status, headers=headers, title=title, text=text, colors=""
    )
