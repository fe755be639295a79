"""The look of the team's page to unsubscribe: title, texts, logo, colours, and how it looks with them."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from pillarbox.dashboard.frame.screen_table import NavigationEntry
from pillarbox.dashboard.frame.screens import act, download, screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t, use_language
from pillarbox.dashboard.texts.languages import NAMES
from pillarbox.dashboard.unsubscribing import UnsubscribePages, policy_of
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.people.roles import Right
from pillarbox.unsubscribe import page_settings
from pillarbox.unsubscribe.choices import Preferences
from pillarbox.unsubscribe.page_settings import SettingFault, UnsubscribePageSettings
from pillarbox.unsubscribe.queries import ShownTopic

HERE: Final = "/dashboard/unsubscribe-page"
PREVIEW: Final = f"{HERE}/html"
LANGUAGES: Final = tuple(NAMES)
FIELDS: Final = (
    *("logo_url", *page_settings.COLORS, *page_settings.TEXTS),
    *(f"{name}.{code}" for code in LANGUAGES for name in page_settings.TEXTS),
)
FAULTS: Final = {
    SettingFault.TOO_LONG: "unsubscribe_page.too_long",
    SettingFault.NO_LOGO: "unsubscribe_page.no_logo",
    SettingFault.NO_COLOR: "unsubscribe_page.no_color",
    SettingFault.HARD_TO_READ: "unsubscribe_page.hard_to_read",
}


@screen(
    HERE,
    title="unsubscribe_page.title",
    words="unsubscribe_page.words",
    right=Right.MANAGE,
    navigation=NavigationEntry(group="team", order=35, icon="template"),
    query={"done": str},
)
async def show(visit: Visit) -> Reply[Html]:
    """Show the settings with a preview."""
    return await own_page_form(visit, await page_settings.settings_of(visit.db))


@act(HERE, title="unsubscribe_page.save", right=Right.MANAGE, back=HERE)
async def save(visit: Visit, form: Form) -> Reply[Html]:
    """Store what was chosen, or say what is wrong with which field."""
    settings, faults = _settings_in(form)
    if faults:
        return await own_page_form(visit, settings, faults)
    await page_settings.save(visit.db, settings, visit.actor, visit.request.at)
    return visit.to(HERE, done="unsubscribe_page")


@download(PREVIEW, title="unsubscribe_page.preview", right=Right.MANAGE, query={"language": str})
async def preview(visit: Visit) -> Reply[Html]:
    """Show the page with what is stored, in the language of the address."""
    _speak(visit.request.query.text("language"))
    return preview_page(await page_settings.settings_of(visit.db))


@act(PREVIEW, title="unsubscribe_page.preview", right=Right.MANAGE, back=HERE)
async def preview_unsaved(visit: Visit, form: Form) -> Reply[Html]:
    """Show the page with what was typed; fields with a fault are left out."""
    settings, faults = _settings_in(form)
    _speak(form.get("language"))
    return preview_page(page_settings.without(settings, faults))


def _speak(code: str | None) -> None:
    """Write the preview in a language; in the visitor's where it is not known."""
    if code in NAMES:
        use_language(code, None)


def _settings_in(form: Form) -> tuple[UnsubscribePageSettings, dict[str, SettingFault]]:
    return page_settings.checked({name: form.get(name) for name in FIELDS}, LANGUAGES)


async def own_page_form(
    visit: Visit, settings: UnsubscribePageSettings, faults: dict[str, SettingFault] | None = None
) -> Reply[Html]:
    """Return the form, with what is wrong beside each field."""
    wrong = {name: t(FAULTS[fault]) for name, fault in (faults or {}).items()}
    return await visit.draw(
        "teams/unsubscribe_page.html",
        status=422 if wrong else 200,
        problem=t("unsubscribe_page.not_saved") if wrong else None,
        settings=settings,
        wrong=wrong,
        languages=NAMES,
        longest_title=page_settings.LONGEST_TITLE,
        longest_text=page_settings.LONGEST_TEXT,
        longest_url=page_settings.LONGEST_URL,
    )


def preview_page(settings: UnsubscribePageSettings) -> Reply[Html]:
    """Return the page as a made-up recipient sees it, for a frame in which nothing can be pressed."""
    topics = [
        ShownTopic(
            id=UUID(int=number),
            name=t(f"unsubscribe_page.topic.{number}"),
            description=None,
            is_public=True,
            is_subscribed=True,
        )
        for number in (1, 2)
    ]
    shown = Preferences(
        address="ada@quay.example",
        sender=None,
        is_unsubscribed=False,
        topic=topics[0],
        topics=topics,
        settings=settings,
    )
    reply = UnsubscribePages().preferences(shown)
    reply.headers["content-security-policy"] = policy_of(settings, frame_ancestors="'self'") + "; sandbox"
    reply.headers["x-frame-options"] = "SAMEORIGIN"
    return reply
