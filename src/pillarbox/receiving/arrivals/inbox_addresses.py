"""Which inbox an address of the envelope may mean (inboxes.md 9.1). Pure.

The addresses of inboxes are in lower case and have no quotes. What the domain means is known already.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

from pillarbox.inboxes.inbox.addresses import meant_by

T = TypeVar("T")

_FORWARDED: Final = re.compile(r"[a-z2-7]{24}(?:\+.*)?", re.ASCII | re.IGNORECASE | re.DOTALL)


def candidates(recipients: Iterable[str]) -> tuple[str, ...]:
    """Return the addresses of inboxes that one of them may mean."""
    return tuple(dict.fromkeys([address for one in recipients for address in meant_by(one)]))


def by_inbox(recipients: Sequence[str], inboxes: Mapping[str, T]) -> dict[T, list[str]]:
    """Return the recipients of each inbox, as they stood in the envelope; `inboxes` by their addresses."""
    found: dict[T, list[str]] = {}
    for recipient in recipients:
        address = next((one for one in meant_by(recipient) if one in inboxes), None)
        if address is not None:
            found.setdefault(inboxes[address], []).append(recipient)
    return found


def receiving_local(local: str) -> str | None:
    """Return the local part of the receiving address that this may be, without what follows a plus; None
    where it can be none."""
    return local.partition("+")[0].lower() if _FORWARDED.fullmatch(local) else None
