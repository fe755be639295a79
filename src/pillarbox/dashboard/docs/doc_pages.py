"""Pages of the documentation, for everybody: they hold nothing of any team.

A page is made in a thread when it is first asked for, and kept with a hash of its content (ETag).
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any, Final

from pillarbox.dashboard import pages
from pillarbox.dashboard.docs import doc_markdown, doc_search, guide
from pillarbox.dashboard.docs.reference import ApiReference, Operation
from pillarbox.dashboard.frame import assets
from pillarbox.dashboard.frame.layout import POLICY
from pillarbox.dashboard.frame.reference_links import API
from pillarbox.dashboard.frame.screen_table import ScreenTable
from pillarbox.dashboard.people.page_visits import failure_page, with_pages
from pillarbox.dashboard.texts import language, t
from pillarbox.kernel.http.openapi import ApiDocument
from pillarbox.kernel.http.request import HTML, Html, OctetsAnswer, Reply, Request
from pillarbox.kernel.http.routing import Access, Handler, RouteTable, route
from pillarbox.kernel.process.offload import in_thread
from pillarbox.kernel.security.rate_limit import Windows, key_for
from pillarbox.kernel.wire.problems import NotFound, RateLimited, ServerOverloaded
from pillarbox.people.logins import network_of

HERE: Final = "/docs"
TEXT: Final = "text/plain; charset=utf-8"
MARKDOWN: Final = "text/markdown; charset=utf-8"
MARKDOWN_END: Final = ".md"
SEARCHES: Final = 120
MINUTE: Final = 60.0
"""So many searches a network may ask for in a minute."""

WAIT: Final = 1.0
"""Seconds that a search waits for the one before it."""

REMEMBERED: Final = 6 * 1024 * 1024
"""Octets of pages that a process keeps."""

HEADERS: Final = {
    **pages.HEADERS,
    "content-security-policy": POLICY,
    "cache-control": "no-cache",
    "vary": "accept-language, cookie",
}
"""Browsers keep a page, and ask each time whether it is still so."""


@dataclass(frozen=True, slots=True)
class DocPage:
    """A page as it is sent."""

    body: bytes
    media: str
    etag: str

    def reply(self, request: Request) -> Reply[Any]:
        """Return the page, or 304 where the browser has it."""
        headers = {**HEADERS, "etag": self.etag}
        known = [
            name.strip().removeprefix("W/") for name in (request.header("if-none-match") or "").split(",")
        ]
        if self.etag in known:
            return Reply(b"", 304, headers, self.media)
        return Reply(self.body, 200, headers, self.media)


class Documentation:
    """The reference of this program, and the pages that were made of it and of the guide."""

    def __init__(self, limit: int = REMEMBERED) -> None:
        self._reference: ApiReference | None = None
        self._kept: OrderedDict[str, DocPage] = OrderedDict()
        self._octets = 0
        self._limit = limit
        self._making = asyncio.Lock()
        self._searches = asyncio.Semaphore(1)

    async def reference(self, request: Request) -> ApiReference:
        """Return the operations of the program."""
        if self._reference is not None:
            return self._reference
        async with self._making:
            known: ApiReference | None = self._reference
            if known is None:
                table, url = request.use(RouteTable), request.use(ScreenTable).public_url
                encoded = await request.use(ApiDocument).ready(table)
                known = await in_thread(_read_reference, encoded, url)
            self._reference = known
        return known

    async def search(self, reference: ApiReference, q: str) -> str:
        """Return the page with what fits. One is made at a time: the threads are there for others too."""
        try:
            async with asyncio.timeout(WAIT):
                await self._searches.acquire()
        except TimeoutError:
            raise ServerOverloaded(t("docs.search_waits")) from None
        try:
            return await in_thread(copy_context().run, _search_page, reference, q)
        finally:
            self._searches.release()

    async def page(self, address: str, media: str, make: Callable[[], str | bytes]) -> DocPage:
        """Return the page of an address, which `make` makes in a thread where none is kept.

        A page for browsers is in the reader's language, but for what the reference and the guide say. What
        programs read is in English.
        """
        name = f"{language()} {address}" if media == HTML else address
        kept = self._kept.get(name)
        if kept is not None:
            self._kept.move_to_end(name)
            return kept
        if media == HTML:
            made = await in_thread(copy_context().run, _doc_page, make, media)
        else:
            made = await in_thread(_doc_page, make, media)
        if name not in self._kept:
            self._kept[name] = made
            self._octets += len(made.body)
        while self._octets > self._limit:
            _, gone = self._kept.popitem(last=False)
            self._octets -= len(gone.body)
        return made


def _read_reference(document: bytes, url: str) -> ApiReference:
    guide.groups()
    return ApiReference(document, url)


def _doc_page(make: Callable[[], str | bytes], media: str) -> DocPage:
    content = make()
    body = content.encode() if isinstance(content, str) else content
    return DocPage(body, media, f'"{sha256(body).hexdigest()[:24]}"')


def documented(
    path: str, summary: str, query: Mapping[str, Any] | None = None
) -> Callable[[Handler], Handler]:
    """Mark a function as a page of the documentation. Its problems are shown as pages."""
    mark = route(
        "GET",
        path,
        needs=Access.PUBLIC,
        summary=summary,
        query=query,
        also=(304,),
        pages=(404, 422, 429, 503) if query else (404,),
        screen=failure_page,
    )
    return lambda handler: mark(with_pages(handler))


# Pages ---------------------------------------------------------------------------------------------


@documented(HERE, "The documentation: guide and reference")
async def index(request: Request) -> Reply[Html]:
    documentation = request.use(Documentation)
    reference = await documentation.reference(request)
    page = await documentation.page(
        HERE, HTML, lambda: _drawn("docs/index.html", reference, title=t("docs.title"))
    )
    return page.reply(request)


@documented(guide.BROWSER, "The pages for browsers, as the OpenAPI document lists them")
async def browser_pages(request: Request) -> Reply[Html]:
    documentation = request.use(Documentation)
    reference = await documentation.reference(request)
    page = await documentation.page(
        guide.BROWSER,
        HTML,
        lambda: _drawn("docs/browser.html", reference, title=t("docs.browser"), here=guide.BROWSER),
    )
    return page.reply(request)


@documented("/docs/search", "Search the documentation", {"q": str})
async def search(request: Request) -> Reply[Html]:
    """Show what fits; nothing is kept."""
    q = (request.query.text("q") or "").strip()[: doc_search.LONGEST]
    network = key_for(f"docs search from {network_of(request.client)}")
    taken = request.use(Windows).take(network, SEARCHES, MINUTE)
    if not taken.allowed:
        raise RateLimited(t("docs.too_many_searches"), {"retry-after": str(taken.reset)})
    documentation = request.use(Documentation)
    reference = await documentation.reference(request)
    body = await documentation.search(reference, q)
    return Reply.html(body, headers={**HEADERS, "cache-control": "no-store"})


@documented("/docs/api/{operation}", "An operation of the API, or with .md at its end as Markdown")
async def operation(request: Request) -> Reply[OctetsAnswer]:
    documentation = request.use(Documentation)
    reference = await documentation.reference(request)
    name = request.param("operation")
    is_markdown = name.endswith(MARKDOWN_END)
    known = reference.by_slug.get(name.removesuffix(MARKDOWN_END))
    if known is None:
        raise NotFound("Operation")
    make = partial(_operation_text if is_markdown else _operation_page, reference, known)
    page = await documentation.page(f"{API}/{name}", MARKDOWN if is_markdown else HTML, make)
    return page.reply(request)


@documented("/docs/guide/{page}", "A page of the guide, or with .md at its end as Markdown")
async def guide_page(request: Request) -> Reply[OctetsAnswer]:
    documentation = request.use(Documentation)
    reference = await documentation.reference(request)
    address = request.param("page")
    is_markdown = address.endswith(MARKDOWN_END)
    name = address.removesuffix(MARKDOWN_END)
    if name not in guide.sources():
        raise NotFound("Page")
    make = partial(guide.markdown_of, name) if is_markdown else partial(_guide_page, reference, name)
    page = await documentation.page(guide.path_of(address), MARKDOWN if is_markdown else HTML, make)
    return page.reply(request)


@documented("/docs/images/{name}", "A picture of the guide")
async def picture(request: Request) -> Reply[OctetsAnswer]:
    name = request.param("name")
    if name not in guide.pictures():
        raise NotFound("Picture")
    media = guide.PICTURE_MEDIA[name.rpartition(".")[2]]
    page = await request.use(Documentation).page(
        f"{guide.IMAGES}/{name}", media, partial(guide.picture, name)
    )
    return page.reply(request)


@documented("/llms.txt", "An index of guide and reference for programs (llmstxt.org)")
async def llms(request: Request) -> Reply[OctetsAnswer]:
    documentation = request.use(Documentation)
    reference = await documentation.reference(request)
    page = await documentation.page("/llms.txt", TEXT, lambda: doc_markdown.index_text(reference))
    return page.reply(request)


def _operation_text(reference: ApiReference, known: Operation) -> str:
    return doc_markdown.operation_text(reference, reference.details(known))


def _operation_page(reference: ApiReference, known: Operation) -> str:
    return _drawn(
        "docs/operation.html",
        reference,
        title=known.summary,
        here=known.resource,
        current=known.address,
        details=reference.details(known),
        access=doc_markdown.access_text(known),
    )


def _guide_page(reference: ApiReference, name: str) -> str:
    page, (before, after) = guide.page_of(name), guide.neighbors(name)
    return _drawn(
        "docs/guide.html",
        reference,
        title=page.title,
        here=guide.path_of(name),
        page=page,
        before=before,
        after=after,
        contents=[heading for heading in page.headings if heading.level == 2],
    )


def _search_page(reference: ApiReference, q: str) -> str:
    return _drawn(
        "docs/search.html",
        reference,
        title=t("docs.search"),
        here="/docs/search",
        q=q,
        matches=doc_search.search(reference, q),
    )


def _drawn(
    template: str,
    reference: ApiReference,
    *,
    title: str,
    here: str = HERE,
    current: str | None = None,
    **values: Any,
) -> str:
    """Return a page with the navigation of the documentation.

    `here` is the entry of the navigation that the page belongs to, `current` the operation that it shows.
    """
    return pages.render(
        template,
        title=title,
        here=here,
        current=current,
        reference=reference,
        guide_groups=guide.groups(),
        stylesheet=assets.address("dashboard.css"),
        script=assets.address("dashboard.js"),
        **values,
    )
