"""The errors that stop a backup or a restore."""

from __future__ import annotations


class BackupError(Exception):
    """It cannot be done, or went wrong; the message is one sentence for the operator."""


class WrongPassphrase(BackupError):  # noqa: N818 (a state, reported as a sentence)
    """The key ring of a backup is encrypted with another passphrase; nothing is wrong with the backup."""

    def __init__(self, backup: str) -> None:
        super().__init__(f"The passphrase is not the one of the backup {backup}: its key ring does not open.")
