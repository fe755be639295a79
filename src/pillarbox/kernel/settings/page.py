"""The page docs/guide/settings.md, made from the rows of the settings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pillarbox.kernel.manifests import SliceManifest
from pillarbox.kernel.settings.setting import Setting
from pillarbox.kernel.settings.table import SETTINGS

HEAD = """# Settings

<!-- Made by script/docs from the rows of the settings (`settings.py` of each slice): change those. -->

Every setting of `pillarbox serve` can be given as a flag, as an environment variable, or as a file whose
path stands in the variable with `_FILE` at its end (for secrets that are mounted as files). A flag beats
the environment, the environment beats the file, the file beats the default. A wrong value or an unknown
`PILLARBOX_…` variable stops the start with one sentence and exit status 2. Settings are read at the start: a
change needs a restart. What is in the files of `--tls-cert` and `--tls-key` is read again when it changes.

Durations are written `30s`, `15m`, `96h`, `4d`; sizes `512MiB`, `1GiB`; lists with commas. Port 0 takes a
free port, and the `ready` line shows it.
"""

SECTION = """
## {title}

| Flag | Environment | Default | Meaning |
|---|---|---|---|
"""


def settings_page(manifests: Iterable[SliceManifest]) -> str:
    """Return the whole page: a section for what every installation needs, and one for each slice."""
    sections = [("The server", SETTINGS), *((one.title, one.settings) for one in manifests if one.settings)]
    return HEAD + "".join(SECTION.format(title=title) + "".join(map(row, rows)) for title, rows in sections)


def row(setting: Setting[Any]) -> str:
    default = f"`{setting.default}`" if setting.default is not None else setting.otherwise
    flag = f"`{setting.flag} {setting.shape}`"
    return f"| {flag} | `{setting.env}` | {default} | {setting.meaning} |\n"
