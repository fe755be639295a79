"""The settings of tracking."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pillarbox.kernel.settings import kinds
from pillarbox.kernel.settings.setting import Setting

if TYPE_CHECKING:
    from pillarbox.tracking.machines import Machine


def machines_of(text: str) -> tuple[Machine, ...]:
    """Return the rows of a file; none for `none`."""
    if text == "none":
        return ()
    from pillarbox.tracking.machines import WrongRow, read_rows

    path: Path = kinds.readable_file(text)
    try:
        return read_rows(path.read_text("utf-8"))
    except UnicodeDecodeError:
        raise kinds.WrongValue("is not a text in UTF-8") from None
    except WrongRow as wrong:
        raise kinds.WrongValue(str(wrong)) from None


TRACKING_MACHINES = Setting(
    name="tracking_machines",
    parse=machines_of,
    shape="FILE",
    default="none",
    meaning="More programs whose opens and clicks are marked as those of machines.",
)

SETTINGS: tuple[Setting[Any], ...] = (TRACKING_MACHINES,)
