"""How the team's mail looks: colours, font, logo, width and footer, with a mail in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from pillarbox.dashboard.editor.preview import PreviewLook, preview_frame
from pillarbox.dashboard.editor.template_list import GALLERIES
from pillarbox.dashboard.frame.screen_table import NavigationEntry
from pillarbox.dashboard.frame.screens import act, download, screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t
from pillarbox.dashboard.texts.languages import language
from pillarbox.documents import team_theme
from pillarbox.documents.rendering import DocumentRendering
from pillarbox.documents.source import document_of
from pillarbox.documents.theme import DEFAULT, FONTS, Theme, faults
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.people.roles import Right

HERE: Final = "/dashboard/mail-theme"
NUMBERS: Final = ("width", "corner", "logo_width")
COLORS: Final = ("accent", "page", "card", "text")


@screen(
    HERE,
    title="theme.title",
    words="theme.words",
    right=Right.USE,
    navigation=NavigationEntry(group="team", order=34, icon="template"),
    query={"done": str},
)
async def show(visit: Visit) -> Reply[Html]:
    """Show the theme with a mail in it."""
    return await theme_page(visit, msgspec.to_builtins(await team_theme.theme_of(visit.db)), {})


@act(HERE, title="theme.save", right=Right.USE, back=HERE)
async def save(visit: Visit, form: Form) -> Reply[Html]:
    """Store the theme, or say what is wrong with which field."""
    typed, theme, wrong = _read(form)
    if theme is None or wrong:
        return await theme_page(visit, typed, wrong)
    await team_theme.save(visit.db, theme, visit.actor, visit.request.at)
    return visit.to(HERE, done="theme")


@download(f"{HERE}/html", title="templates.preview", right=Right.USE)
async def frame(visit: Visit) -> Reply[Html]:
    """Show a mail in the theme that is stored."""
    dark = visit.request.query.last("mode") == "dark"
    return await _frame(visit, await team_theme.theme_of(visit.db), is_dark=dark)


@act(f"{HERE}/html", title="templates.preview", right=Right.USE, back=HERE)
async def unsaved_frame(visit: Visit, form: Form) -> Reply[Html]:
    """Show a mail in the theme that was typed; in the stored one where that is wrong."""
    _, theme, wrong = _read(form)
    stored = await team_theme.theme_of(visit.db)
    return await _frame(visit, stored if theme is None or wrong else theme, is_dark=False)


async def theme_page(visit: Visit, typed: Mapping[str, Any], wrong: Mapping[str, str]) -> Reply[Html]:
    """Return the form, with what is wrong beside each field."""
    return await visit.draw(
        "editor/theme.html",
        status=422 if wrong else 200,
        problem=t("theme.not_saved") if wrong else None,
        here=HERE,
        theme=typed,
        wrong=wrong,
        colors=COLORS,
        fonts=list(FONTS),
    )


async def _frame(visit: Visit, theme: Theme, *, is_dark: bool) -> Reply[Html]:
    rendering = visit.request.use(DocumentRendering)
    welcome = GALLERIES[language()]["welcome"]
    mail = await rendering.render(visit.team_id, document_of(welcome.document), theme)
    look = PreviewLook(is_dark=is_dark)
    return await preview_frame(visit, mail, welcome.subject, welcome.variables, look)


def _read(form: Form) -> tuple[dict[str, Any], Theme | None, dict[str, str]]:
    """Return what was typed, the theme that it is, and the text of what is wrong for each field."""
    typed: dict[str, Any] = {name: form.get(name).strip() for name in msgspec.to_builtins(DEFAULT)}
    values = dict(typed)
    wrong: dict[str, str] = {}
    for name in NUMBERS:
        values[name] = int(typed[name]) if typed[name].isascii() and typed[name].isdigit() else -1
    for name, value in values.items():
        try:
            msgspec.convert({name: value}, Theme)
        except msgspec.ValidationError:
            wrong[name] = t("theme.wrong")
    if wrong:
        return typed, None, wrong
    theme = msgspec.convert(values, Theme)
    return typed, theme, {fault.field: t(f"theme.wrong.{fault.reason}") for fault in faults(theme)}
