"""What stops a backup or a restore."""

from __future__ import annotations


class BackupError(Exception):
    """It cannot be done, or went wrong; the message is one sentence for the operator."""
