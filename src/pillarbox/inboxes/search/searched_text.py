"""The text of a message in which words are looked for: its subject, its correspondents, the names of its
attachments and its body. Pure, and cheap: it is made while the sender waits for the answer.

A word of it stands between blanks, and each part on a line. So ` two words ` is found by comparing octets,
and never reaches from one part into the next. Words with accents stand there a second time without them,
behind a mark that is no word: whoever writes none finds both, and whoever writes them finds only those.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from pillarbox.inboxes.search.folding import spaced_words, without_accents
from pillarbox.mail.html.plain_text import text_of

MOST_BODY: Final = 100_000
"""Characters of a body that are searched."""
MOST_HTML: Final = 400_000
"""Characters of HTML that are read for them."""
MOST_NAMES: Final = 10_000
"""Characters of correspondents, and of names of attachments."""


TWICE: Final = "~"
"""Between words as they stand and the same ones without accents."""


class SearchedMessage(NamedTuple):
    """The parts of a message that are searched."""

    subject: str | None
    sender: str
    recipients: Sequence[str] = ()
    filenames: Sequence[str] = ()
    text: str | None = None
    html: str | None = None


def searched_text(message: SearchedMessage) -> str:
    """Return the words of each part on a line of its own, folded: subject, sender, recipients, names of
    attachments, body. The HTML counts where there is no text."""
    body = message.text
    if (body is None or body.isspace() or not body) and message.html:
        body = text_of(message.html[:MOST_HTML])
    parts = (
        (message.subject or "")[:MOST_NAMES],
        message.sender[:MOST_NAMES],
        "\n".join(message.recipients)[:MOST_NAMES],
        "\n".join(message.filenames)[:MOST_NAMES],
        (body or "")[:MOST_BODY],
    )
    found = "\n".join(map(_words, parts))
    return found if found.isascii() else found.encode("utf-8", "replace").decode("utf-8")


def _words(text: str) -> str:
    """Return the words of a text; a few characters become many when they are folded, and so many do not
    count."""
    found = spaced_words(text)
    most = 2 * MOST_NAMES + 2 * len(text)
    if len(found) > most:
        found = found[: found.rfind(" ", 0, most) + 1]
    plain = without_accents(found)
    return found if plain == found else f"{found}{TWICE}{plain}"
