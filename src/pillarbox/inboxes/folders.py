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


class ThreadFolder(StrEnum):
    """Where a thread is."""

    INBOX = "inbox"
    ARCHIVE = "archive"
    SPAM = "spam"
    SENT = "sent"
    TRASH = "trash"


_BROUGHT_BACK: Final = frozenset({ThreadFolder.ARCHIVE, ThreadFolder.SENT, ThreadFolder.TRASH})
"""Where new mail for the inbox would not be seen."""


def of_first_message(*, is_inbound: bool, is_spam: bool = False) -> ThreadFolder:
    """Return the folder in which a thread begins."""
    if not is_inbound:
        return ThreadFolder.SENT
    return ThreadFolder.SPAM if is_spam else ThreadFolder.INBOX


def after_inbound(folder: ThreadFolder) -> ThreadFolder:
    """Return the thread's folder after a message that is not spam has joined it. (Spam joins threads in
    `spam` alone.)"""
    return ThreadFolder.INBOX if folder in _BROUGHT_BACK else folder


def after_outbound(folder: ThreadFolder, *, has_inbound: bool) -> ThreadFolder:
    """Return the thread's folder after a message was sent in it."""
    if folder is not ThreadFolder.TRASH:
        return folder
    return ThreadFolder.INBOX if has_inbound else ThreadFolder.SENT
