"""Sentences of `doctor` and `verify`, which are recognised by these texts. Begin with `checks.py`."""

from __future__ import annotations

from typing import Final

from pillarbox.dashboard.texts.examination import checks, verification

TEXTS: Final[dict[str, str]] = {**checks.TEXTS, **verification.TEXTS}
