"""The page docs/guide/settings.md, made from the table of settings."""

from __future__ import annotations

from pillarbox.kernel.settings.table import SETTINGS, Setting

HEAD = """# Settings

<!-- Made by script/docs from src/pillarbox/kernel/settings/table.py: change the table, not this page. -->

Every setting of `pillarbox serve` can be given as a flag, as an environment variable, or as a file whose
path stands in the variable with `_FILE` at its end (for secrets that are mounted as files). A flag beats
the environment, the environment beats the file, the file beats the default. A wrong value or an unknown
`PILLARBOX_…` variable stops the start with one sentence and exit status 2.

Durations are written `30s`, `15m`, `96h`, `4d`; sizes `512MiB`, `1GiB`; lists with commas. Port 0 takes a
free port, and the `ready` line shows it.

| Flag | Environment | Default | Meaning |
|---|---|---|---|
"""


def settings_page() -> str:
    """The whole page."""
    return HEAD + "".join(row(setting) for setting in SETTINGS)


def row(setting: Setting) -> str:
    default = f"`{setting.default}`" if setting.default is not None else setting.otherwise
    flag = f"`{setting.flag} {setting.shape}`"
    return f"| {flag} | `{setting.env}` | {default} | {setting.meaning} |\n"
