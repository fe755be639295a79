"""The settings as `pillarbox settings` and the dashboard show them: each value with its origin, no secret."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from pillarbox.kernel.manifests import SliceManifest
from pillarbox.kernel.settings.setting import Setting
from pillarbox.kernel.settings.settings import Settings
from pillarbox.kernel.settings.table import SETTINGS

SERVER: Final = "The server"
DEFAULT: Final = "default"
AT_START: Final = "found at the start"
HIDDEN: Final = "(hidden)"


class ShownSetting(NamedTuple):
    """One setting. `origin` is the flag or variable that gave it, `default`, or `found at the start`."""

    section: str
    flag: str
    env: str
    value: str
    origin: str
    meaning: str


def shown_settings(settings: Settings, manifests: Iterable[SliceManifest]) -> list[ShownSetting]:
    """Return every setting: those of the server, then those of the slices."""
    sections = [(SERVER, SETTINGS), *((entry.title, entry.settings) for entry in manifests if entry.settings)]
    return [_shown(settings, section, row) for section, rows in sections for row in rows]


def _shown(settings: Settings, section: str, row: Setting[Any]) -> ShownSetting:
    text = settings.given.get(row.name)
    if text is None:
        origin, value = DEFAULT, row.default if row.default is not None else row.otherwise
    else:
        origin, value = settings.sources.get(row.name, AT_START), HIDDEN if row.secret else text
    return ShownSetting(
        section=section,
        flag=row.flag,
        env=row.env,
        value=value or "",
        origin=origin,
        meaning=row.meaning,
    )
