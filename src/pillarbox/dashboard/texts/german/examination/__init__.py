"""Sentences of `doctor` and `verify` in German. Begin with `checks.py`."""

from __future__ import annotations

from typing import Final

from pillarbox.dashboard.texts.german.examination import checks, verification

TEXTS: Final[dict[str, str]] = {**checks.TEXTS, **verification.TEXTS}
