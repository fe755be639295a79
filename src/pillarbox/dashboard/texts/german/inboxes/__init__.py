"""Texts of the mail client, in German: one module for each group of screens."""

from __future__ import annotations

from typing import Final

from pillarbox.dashboard.texts.german.inboxes import drafts, inbox_settings, threads, trust

TEXTS: Final[dict[str, str]] = {
    **drafts.TEXTS,
    **inbox_settings.TEXTS,
    **threads.TEXTS,
    **trust.TEXTS,
}
