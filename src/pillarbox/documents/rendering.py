"""Mail made of a document: HTML that programs show alike, and a text part.

MJML is rendered by the library MRML, in one thread with a large stack: it walks elements by recursion, and a
document that is nested too deeply would end the process. So the number of elements is bounded before.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from pillarbox.documents.blocks import (
    LONGEST_SOURCE,
    BlockDocument,
    Document,
    HtmlDocument,
    MarkdownDocument,
    MjmlDocument,
)
from pillarbox.documents.kept_placeholders import KeptPlaceholders
from pillarbox.documents.markdown_text import limited_time
from pillarbox.documents.mjml_blocks import MjmlWriter
from pillarbox.documents.safe_html import active_part
from pillarbox.documents.text_part import text_part
from pillarbox.documents.theme import Theme
from pillarbox.kernel.wire.problems import InvalidField
from pillarbox.kernel.work.team_turns import IsGone, TeamTurns, never
from pillarbox.mail.html.limits import ATTRIBUTE, next_tag

STACK: Final = 64 * 1024 * 1024
"""Octets of the stack of the thread; only what is used takes memory."""
MOST_ELEMENTS: Final = 5000
MOST_ATTRIBUTES: Final = 60
"""Of one element in MJML."""
LONGEST_RESULT: Final = 4 * 1024 * 1024

REFUSAL: Final = "Too many documents are being rendered. Please try again in a moment."


class RenderedDocument(NamedTuple):
    """The bodies of a mail, with placeholders. `text` is None where it is made of the HTML."""

    html: str
    text: str | None


class DocumentRefused(InvalidField):
    """The document cannot be made into a mail (422)."""

    def __init__(self, reason: str) -> None:
        super().__init__("document", reason)


def rendered(document: Document, theme: Theme) -> RenderedDocument:
    """Return the mail of a document; raises DocumentRefused. It takes time in proportion to the document."""
    if isinstance(document, HtmlDocument):
        _refuse_active(document.html)
        return RenderedDocument(document.html, document.text)
    if isinstance(document, MjmlDocument):
        kept = KeptPlaceholders()
        html = kept.in_html(_html_of_mjml(kept.marked(document.source)))
        _refuse_active(html)
        return RenderedDocument(html, None)
    if len(msgspec.json.encode(document).decode()) > LONGEST_SOURCE:
        raise DocumentRefused(f"All its texts together may have {LONGEST_SOURCE} characters.")
    kept = KeptPlaceholders()
    with limited_time():
        html = kept.in_html(_html_of_mjml(MjmlWriter(theme, kept).document(document)))
        return RenderedDocument(html, text_part(document, theme))


def mjml_of(document: BlockDocument | MarkdownDocument, theme: Theme) -> str:
    """Return a document as MJML with its placeholders, to be written on as that."""
    kept = KeptPlaceholders()
    with limited_time():
        return kept.in_html(MjmlWriter(theme, kept).document(document))


def _html_of_mjml(source: str) -> str:
    # Loaded with the first document: most processes never render one.
    import mjml

    _check_size(source)
    try:
        html = str(mjml.mjml2html(source, fonts={}))
    except ValueError as wrong:
        raise DocumentRefused(f"The MJML is not valid: {str(wrong)[:300]}.") from None
    if len(html) > LONGEST_RESULT:
        raise DocumentRefused("The mail that it makes is too large.")
    return html


def _check_size(source: str) -> None:
    """Refuse MJML with more elements or attributes than are rendered in bounded time and stack."""
    if not source.strip():
        raise DocumentRefused("There is no MJML in it.")
    place = elements = 0
    while (tag := next_tag(source, place)) is not None:
        place = tag.end()
        if tag[3] or not tag[4]:
            continue
        elements += 1
        count = 0
        while (attribute := ATTRIBUTE.match(source, place)) is not None:
            place = attribute.end()
            count += 1
        if count > MOST_ATTRIBUTES:
            raise DocumentRefused(f"An element may have at most {MOST_ATTRIBUTES} attributes.")
    # What is read as one tag here may be several to the library.
    if max(elements, source.count("<") - source.count("</")) > MOST_ELEMENTS:
        raise DocumentRefused(f"There may be at most {MOST_ELEMENTS} elements.")


def _refuse_active(html: str) -> None:
    if (part := active_part(html)) is not None:
        raise DocumentRefused(f"`{part}` may not stand in a mail: mail programs refuse what can act.")


class DocumentRendering:
    """The thread that renders, and who waits for it: teams take turns."""

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None
        self._turns = TeamTurns(1, REFUSAL)

    async def render(
        self, team_id: UUID, document: Document, theme: Theme, is_gone: IsGone = never
    ) -> RenderedDocument:
        """Return the mail of a document. Raises DocumentRefused, and ServerOverloaded where too many wait."""
        await self._turns.take(team_id, 1, is_gone)
        work = asyncio.get_running_loop().run_in_executor(self._executor(), lambda: rendered(document, theme))
        work.add_done_callback(self._ended)
        # Whoever is canceled leaves the thread at work: the next turn begins when it has ended.
        return await asyncio.shield(work)

    def close(self) -> None:
        """Begin nothing any more; what is at work ends in bounded time."""
        self._turns.close()
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)

    def _executor(self) -> ThreadPoolExecutor:
        if self._thread is None:
            self._thread = _thread_with_stack(STACK)
        return self._thread

    def _ended(self, future: asyncio.Future[Any]) -> None:
        if not future.cancelled():
            future.exception()
        self._turns.give(1)


def _thread_with_stack(octets: int) -> ThreadPoolExecutor:
    """Return an executor whose only thread, which runs already, has this stack."""
    before = threading.stack_size(octets)
    try:
        executor = ThreadPoolExecutor(1, "pillarbox-document")
        executor.submit(_nothing)
    finally:
        threading.stack_size(before)
    return executor


def _nothing() -> None:
    """Do nothing: the thread starts with its first work."""
