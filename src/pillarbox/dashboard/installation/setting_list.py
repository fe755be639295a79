"""The settings of the process that answers, with where each came from; they are read when it starts."""

from __future__ import annotations

from itertools import groupby
from typing import Final

from pillarbox.dashboard.frame.screen_table import NavigationEntry
from pillarbox.dashboard.frame.screens import screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.installation.choices import shell
from pillarbox.dashboard.installation.facts import InstallationFacts
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.settings.shown_settings import DEFAULT, ShownSetting, shown_settings

HERE: Final = "/dashboard/installation/settings"


@screen(
    HERE,
    title="operator.settings",
    words="operator.settings.words",
    for_operators=True,
    navigation=NavigationEntry(group="installation", order=50, icon="settings", keys="S"),
    query={"show": str, "find": str, "done": str},
)
async def index(visit: Visit) -> Reply[Html]:
    facts = visit.request.use(InstallationFacts)
    rows = shown_settings(facts.settings, facts.manifests)
    changed = [row for row in rows if row.origin != DEFAULT]
    find = (visit.request.query.text("find") or "").strip()
    shows_all = visit.request.query.text("show") == "all" or bool(find)
    listed = [row for row in rows if fits(row, find)] if shows_all else changed
    return await visit.draw(
        "installation/settings.html",
        sections=[
            (section, list(entries)) for section, entries in groupby(listed, key=lambda row: row.section)
        ],
        default=DEFAULT,
        find=find,
        tabs=[
            (HERE, t("operator.settings.changed"), len(changed)),
            (f"{HERE}?show=all", t("operator.settings.all"), len(rows)),
        ],
        chosen=f"{HERE}?show=all" if shows_all else HERE,
        command=[shell("settings") if shows_all else f"{shell('settings')} --changed"],
    )


def fits(row: ShownSetting, text: str) -> bool:
    """Return whether the name, the meaning or the value of a setting contains the text, in any case."""
    return any(text.lower() in field.lower() for field in (row.flag, row.env, row.meaning, row.value))
