"""The header fields by which readers find the message that an answer belongs to (RFC 5322 3.6.4)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from pillarbox.mail.message.headers import LONGEST_VALUE, HeaderError, check_custom_header

KEPT_LAST: Final = 19
"""So many of the newest ids stay, and the first one, by which the conversation is known."""

_ID: Final = re.compile(r"<[!-;=?-~]{1,900}>")


def ids(header: str | None) -> list[str]:
    """Return the ids of a References or In-Reply-To field with their angle brackets, in order; anything else
    in it is left out."""
    return _ID.findall(header or "")


def chain(references: Sequence[str], message_id: str | None) -> list[str]:
    """Return the References of an answer to the message with this id and these References: each id once, its
    own at the end; the first and the newest where they are many or long."""
    own = ids(message_id)
    found = [one for one in (*[one for one in references if one not in own], *own) if _is_writable(one)]
    unique = list(dict.fromkeys(found))
    kept = unique if len(unique) <= KEPT_LAST + 1 else [unique[0], *unique[-KEPT_LAST:]]
    while len(" ".join(kept)) > LONGEST_VALUE:
        # The newest decides which message is answered, so it stays the longest.
        del kept[1 if len(kept) > 2 else 0]
    return kept


def answering(references: Sequence[str], message_id: str | None) -> list[tuple[str, str]]:
    """Return the fields of a reply."""
    own = [one for one in ids(message_id) if _is_writable(one)]
    found = [("In-Reply-To", own[-1])] if own else []
    return found + referring(references, message_id)


def referring(references: Sequence[str], message_id: str | None) -> list[tuple[str, str]]:
    """Return the fields of a forward: it belongs to the conversation and answers no message."""
    linked = chain(references, message_id)
    return [("References", " ".join(linked))] if linked else []


def _is_writable(message_id: str) -> bool:
    """Return whether it can stand in a field as it is."""
    try:
        check_custom_header("References", message_id)
    except HeaderError:
        return False
    return True
