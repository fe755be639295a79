"""Which threads a list shows (inboxes.md 5.1).

The columns that lists are filtered by make one number, `list_class`, that the database keeps beside each
thread. A filter means some of these numbers, and each of them is a range of one index in the order of lists:
a page costs the same however many threads a filter leaves out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from msgspec import Meta

from pillarbox.inboxes.folders import ThreadFolder
from pillarbox.kernel.wire.fields import words
from pillarbox.kernel.wire.problems import Invalid, InvalidParameter
from pillarbox.kernel.wire.query import Query
from pillarbox.kernel.wire.uuids import well_formed

MOST_LABELS: Final = 50
LONGEST_QUERY: Final = 256

FolderName = Literal["inbox", "archive", "spam", "sent", "trash"]

FILTERS: Final[dict[str, Any]] = {
    "folder": FolderName,
    "folders": str,
    "label": str,
    "labels": str,
    "read": bool,
    "query": Annotated[str, Meta(max_length=LONGEST_QUERY)],
}
"""The query parameters that filter threads, in both generations of names."""

CODES: Final = {
    ThreadFolder.INBOX: 0,
    ThreadFolder.ARCHIVE: 4,
    ThreadFolder.SPAM: 8,
    ThreadFolder.SENT: 12,
    ThreadFolder.TRASH: 16,
}
IS_READ: Final = 2
HAS_SENT: Final = 1
"""The summands of `list_class` (0030_thread_lists.sql)."""

SHOWN_AS_SENT: Final = (ThreadFolder.INBOX, ThreadFolder.ARCHIVE, ThreadFolder.SENT)
"""Where a thread with a message that was sent is listed with the folder `sent` too."""


@dataclass(frozen=True, slots=True)
class ThreadFilter:
    """`folders` as the caller names them. `with_sent` adds the threads in which something was sent. `labels`
    are alternatives; none means that labels do not matter. `text` is in the subject or the name of a
    label."""

    folders: frozenset[ThreadFolder] = frozenset({ThreadFolder.INBOX})
    with_sent: bool = False
    read: bool | None = None
    labels: tuple[UUID, ...] = ()
    text: str | None = None

    @classmethod
    def of(cls, query: Query) -> ThreadFilter:
        """Return the filter that a request names."""
        folder, folders = query.last("folder"), query.items("folders")
        labels, newer_labels = query.items("label"), query.items("labels")
        _refuse_both("folder", folder, "folders", folders)
        _refuse_both("label", labels, "labels", newer_labels)
        found = (
            frozenset({_folder("folder", folder)})
            if folder is not None
            else frozenset([_folder("folders", name) for name in folders])
        )
        if not found:
            found = BY_DEFAULT_WITH_LABELS if newer_labels else BY_DEFAULT
        return cls(
            found,
            with_sent=ThreadFolder.SENT in found and not folder,
            read=query.boolean("read"),
            labels=_label_ids("labels", newer_labels) if newer_labels else _label_ids("label", labels),
            text=searched_text(query),
        )

    @property
    def classes(self) -> list[int]:
        """The values of `list_class` that the filter leaves, without labels."""
        return list_classes(self.folders, with_sent=self.with_sent, read=self.read)

    @property
    def places(self) -> list[int]:
        """The classes for any `read`: a cursor is valid wherever its folder is listed."""
        return list_classes(self.folders, with_sent=self.with_sent)


BY_DEFAULT: Final = frozenset({ThreadFolder.INBOX})
BY_DEFAULT_WITH_LABELS: Final = frozenset({ThreadFolder.INBOX, ThreadFolder.ARCHIVE, ThreadFolder.SENT})


def list_classes(
    folders: Collection[ThreadFolder], *, with_sent: bool = False, read: bool | None = None
) -> list[int]:
    """Return the values of `list_class` of threads in these folders."""
    reads = (0, IS_READ) if read is None else (IS_READ if read else 0,)
    found = {
        CODES[folder] + is_read + sent for folder in folders for is_read in reads for sent in (0, HAS_SENT)
    }
    if with_sent:
        found |= {CODES[folder] + is_read + HAS_SENT for folder in SHOWN_AS_SENT for is_read in reads}
    return sorted(found)


def searched_text(query: Query) -> str | None:
    """Return the text that is looked for, None where there is nothing to look for."""
    text = query.last("query") or ""
    if len(text) > LONGEST_QUERY:
        raise InvalidParameter("query", f"Use at most {LONGEST_QUERY} characters.")
    return text.strip() or None


def _refuse_both(older: str, value: object, newer: str, other: object) -> None:
    if value and other:
        raise Invalid(f"Use either `{older}` or `{newer}`, not both.")


def _folder(parameter: str, name: str) -> ThreadFolder:
    try:
        return ThreadFolder(name)
    except ValueError:
        raise InvalidParameter(parameter, words([folder.value for folder in ThreadFolder])) from None


def _label_ids(parameter: str, texts: Sequence[str]) -> tuple[UUID, ...]:
    if len(texts) > MOST_LABELS:
        raise InvalidParameter(parameter, f"Use at most {MOST_LABELS} labels.")
    if not all(map(well_formed, texts)):
        raise InvalidParameter(parameter, "Use ids of labels.")
    return tuple(dict.fromkeys(map(UUID, texts)))
