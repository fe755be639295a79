"""The folder of a thread, and what moves it (inboxes.md section 8).

Pure: a rule answers with the folder that follows. Who stores the answer stores `purge_at` with it: a thread
that comes into the trash is purged `KEPT_IN_TRASH` later, one that is there already keeps its deadline, and
in every other folder there is none.
"""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Final

KEPT_IN_TRASH: Final = timedelta(days=30)


class Folder(StrEnum):
    """Where a thread is."""

    INBOX = "inbox"
    ARCHIVE = "archive"
    SPAM = "spam"
    SENT = "sent"
    TRASH = "trash"


SETTABLE: Final = frozenset({Folder.INBOX, Folder.ARCHIVE, Folder.SPAM, Folder.TRASH})
"""Where a client may move a thread. `sent` is only where threads begin."""

_BROUGHT_BACK: Final = frozenset({Folder.ARCHIVE, Folder.SENT, Folder.TRASH})
"""Where new mail for the inbox would not be seen."""


def of_first_message(*, is_inbound: bool, is_spam: bool = False) -> Folder:
    """Where a thread begins."""
    if not is_inbound:
        return Folder.SENT
    return Folder.SPAM if is_spam else Folder.INBOX


def after_inbound(folder: Folder) -> Folder:
    """Where a thread is after a message that is not spam has joined it. (Spam joins threads in `spam`
    alone.)"""
    return Folder.INBOX if folder in _BROUGHT_BACK else folder


def after_outbound(folder: Folder, *, has_inbound: bool) -> Folder:
    """Where a thread is after a message was sent in it."""
    if folder is not Folder.TRASH:
        return folder
    return Folder.INBOX if has_inbound else Folder.SENT
