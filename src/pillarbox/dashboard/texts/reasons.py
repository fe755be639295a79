"""Texts of the reasons why mail waits, was not sent or was not delivered."""

from __future__ import annotations

from typing import Final

from pillarbox.delivery.commands.words import REASONS

TEXTS: Final[dict[str, str]] = {f"reason.{word}": text for word, text in REASONS.items()}
"""The sentences that the commands print as well."""
