"""The documentation: a page for every operation and each page of the guide, also as Markdown."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from urllib.parse import urldefrag

import httpx
import pytest
from selectolax.lexbor import LexborHTMLParser

from kit.openapi_document import validator_of
from kit.people import a_person, logged_in, text_of, visit
from kit.world import World
from pillarbox.dashboard.docs import doc_pages, doc_search, guide
from pillarbox.dashboard.docs.examples import example_of
from pillarbox.dashboard.docs.markdown_pages import DocLink, anchor_of, rendered
from pillarbox.dashboard.docs.reference import ApiReference, Operation
from pillarbox.dashboard.docs.shapes import ShapeReader, field_names

PAGE_BYTES = 66_000


class Described:
    """The document that the server gives, and the reference that is made of it."""

    def __init__(self, encoded: bytes, document: dict[str, Any]) -> None:
        self.document = document
        self.schemas = document["components"]["schemas"]
        self.reference = ApiReference(encoded, "https://mail.harbor.example")

    def resolved(self, response: dict[str, Any]) -> dict[str, Any]:
        if "$ref" not in response:
            return response
        found: dict[str, Any] = self.document["components"]["responses"][response["$ref"].rpartition("/")[2]]
        return found

    def contents(self, operation: Operation) -> list[dict[str, Any]]:
        """Every schema of a body or an answer."""
        parts = [operation.definition.get("requestBody", {})]
        parts += [self.resolved(response) for response in operation.definition["responses"].values()]
        return [
            shown["schema"]
            for part in parts
            for media, shown in part.get("content", {}).items()
            if "schema" in shown and media != "text/html"
        ]

    def names(self, operation: Operation) -> set[str]:
        """What the page has to name: parameters, headers, fields at any depth, words, statuses."""
        seen: set[str] = set()
        names = {
            name for schema in self.contents(operation) for name in field_names(schema, self.schemas, seen)
        }
        names |= {parameter["name"] for parameter in operation.parameters}
        for status, response in operation.definition["responses"].items():
            names |= {status, *self.resolved(response).get("headers", {})}
        for shape in seen:
            names |= {str(word) for word in words_of(self.schemas[shape]) if isinstance(word, str)}
        return names


def words_of(schema: Any) -> list[Any]:
    if isinstance(schema, list):
        return [word for part in schema for word in words_of(part)]
    if not isinstance(schema, dict):
        return []
    return [*schema.get("enum", ()), *(word for part in schema.values() for word in words_of(part))]


async def described(pillarbox: World) -> Described:
    answer = await pillarbox.client(None).get("/openapi.json")
    return Described(answer.content, answer.json())


async def test_every_operation_has_a_page_with_all_its_fields(pillarbox: World) -> None:
    """As HTML and as Markdown, small enough, without a login."""
    anyone, whole = pillarbox.client(None), await described(pillarbox)
    paths = whole.document["paths"]
    listed = {(operation.method.lower(), operation.path) for operation in whole.reference.operations}
    assert listed >= {(method, path) for path, item in paths.items() for method in item}
    assert {kind for _, kind in listed} >= set(whole.document["webhooks"])
    assert len(whole.reference.by_slug) == len(whole.reference.operations)
    for operation in whole.reference.operations:
        answer = await anyone.get(operation.address)
        assert answer.status_code == 200, operation.slug
        assert len(answer.content) <= PAGE_BYTES, operation.slug
        markdown = await anyone.get(f"{operation.address}.md")
        assert markdown.headers["content-type"].startswith("text/markdown")
        shown = set(re.findall(r"[\w.#-]+", text_of(answer)))
        written = set(re.findall(r"[\w.#-]+", markdown.text))
        missing = whole.names(operation)
        missing = {name for name in missing if set(re.findall(r"[\w.#-]+", name)) - (shown & written)}
        assert missing == set(), operation.slug


async def test_examples_are_what_their_schemas_take(pillarbox: World) -> None:
    whole = await described(pillarbox)
    for operation in whole.reference.operations:
        body = operation.definition.get("requestBody", {}).get("content", {})
        parts = [(content["schema"], True) for content in list(body.values())[:1]]
        parts += [(schema, False) for schema in whole.contents(operation)[len(body) :]]
        for schema, is_request in parts:
            example = example_of(schema, whole.schemas, is_request=is_request)
            validator = validator_of(schema, whole.document["components"]["schemas"])
            faults = [error.message for error in validator.iter_errors(example)]
            assert faults == [], (operation.slug, example)


async def test_every_link_of_the_documentation_leads_somewhere(pillarbox: World) -> None:
    """From the index on: pages, anchors, Markdown, pictures."""
    anyone = pillarbox.client(None)
    seen: dict[str, LexborHTMLParser] = {}
    links, wanted = set(), ["/docs", *(guide.path_of(name) for name in guide.sources())]
    while wanted:
        path = wanted.pop()
        if path in seen:
            continue
        answer = await anyone.get(path)
        assert answer.status_code == 200, path
        assert len(answer.content) <= PAGE_BYTES, path
        page = seen[path] = LexborHTMLParser(answer.text)
        found = [node.attributes.get("href") or "" for node in page.css("a[href]")]
        found += [node.attributes.get("src") or "" for node in page.css("img[src]")]
        for link in (str(httpx.URL(f"http://here{path}").join(href)) for href in found):
            if link.startswith("http://here/"):
                links.add((path, link.removeprefix("http://here")))
                address = urldefrag(link.removeprefix("http://here"))[0]
                if re.fullmatch(r"/docs(/guide/[\w-]+|/browser)?", address):
                    wanted.append(address)
    assert len(links) > 300
    for place, link in sorted(links):
        address, anchor = urldefrag(link)
        if address.startswith("/dashboard"):
            continue
        if address in seen and anchor:
            assert seen[address].css_first(f'[id="{anchor}"]') is not None, (place, link)
        elif address not in seen:
            answer = await anyone.get(address)
            assert answer.status_code == 200, (place, link)


async def test_every_page_of_the_guide_is_there_as_html_and_as_markdown(pillarbox: World) -> None:
    anyone = pillarbox.client(None)
    for link in guide.ordered():
        shown, written = await anyone.get(link.path), await anyone.get(f"{link.path}.md")
        assert f"<h1>{link.title}" in unescape(shown.text)
        assert "<!--" not in shown.text
        assert "&lt;!--" not in shown.text
        assert written.text.startswith(f"# {link.title}") or "`" in written.text.splitlines()[0]
        for href in re.findall(r"\]\((/docs/guide/[^)#]+)", written.text):
            assert (await anyone.get(href)).headers["content-type"].startswith("text/markdown"), (link, href)
    assert {link.name for link in guide.ordered()} == set(guide.sources())
    assert {name for names in guide.GROUPS.values() for name in names} <= set(guide.sources())


async def test_a_page_is_sent_once(pillarbox: World) -> None:
    anyone = pillarbox.client(None)
    for path in ("/docs", "/docs/api/post-emails", "/docs/guide/index", "/docs/guide/index.md", "/llms.txt"):
        first = await anyone.get(path)
        again = await anyone.get(path, headers={"if-none-match": f'"other", {first.headers["etag"]}'})
        assert (again.status_code, again.content) == (304, b""), path
        assert "content-length" not in again.headers
        other = await anyone.get(path, headers={"if-none-match": '"other"'})
        assert other.content == first.content, path


async def test_programs_find_the_pages(pillarbox: World) -> None:
    anyone = pillarbox.client(None)
    answer = await anyone.get("/llms.txt")
    lines = answer.text.splitlines()
    assert lines[0] == "# Pillarbox"
    assert lines[2].startswith("> ")
    links = re.findall(r"^- \[[^\]]+\]\((\S+)\)", answer.text, re.MULTILINE)
    assert len(links) > 150
    for link in links[::10]:
        assert (await anyone.get(httpx.URL(link).path)).status_code == 200, link


async def test_unknown_pages_are_not_there(pillarbox: World) -> None:
    browser = pillarbox.client(None)
    for path in (
        *("/docs/api/none", "/docs/api/post-emails.txt", "/docs/guide/none", "/docs/guide/..%2Findex"),
        *("/docs/guide/index.md.md", "/docs/images/none.png", "/docs/images/..%2Fguide%2Findex.md"),
        "/docs/images/%2Fetc%2Fpasswd",
    ):
        assert (await browser.get(path)).status_code == 404, path
        page = await browser.get(path, headers={"accept": "text/html"})
        assert (page.status_code, page.headers["content-type"][:9]) == (404, "text/html"), path


async def test_the_pages_say_the_same_to_everybody(pillarbox: World) -> None:
    """Nothing of a team stands in them, and they set no cookie."""
    team = await pillarbox.team("Marlin")
    await team.send(to="ada@quay.example", subject="Marlin's invoice")
    ada = await logged_in(pillarbox, await a_person(team, "ada@marlin.example", name="Ada Marlin"))
    anyone = pillarbox.client(None)
    for path in (
        "/docs",
        "/docs/api/get-emails",
        "/docs/guide/dashboard",
        "/docs/search?q=invoice",
        "/llms.txt",
    ):
        mine, theirs = await ada.get(path), await anyone.get(path)
        assert mine.content == theirs.content, path
        assert "marlin" not in theirs.text.lower(), path
        assert "set-cookie" not in theirs.headers, path


async def test_the_search_finds_operations_and_the_guide(pillarbox: World) -> None:
    anyone = pillarbox.client(None)
    for q, link in (
        ("cancel email", "/docs/api/post-emails-email-id-cancel"),
        ("signing_secret", "/docs/api/post-webhooks-webhook-id-signing-secret-rotate"),
        ("email.bounced", "/docs/api/webhook-email-bounced"),
        ("smarthost", "/docs/guide/index#5-let-mail-out"),
    ):
        answer = await anyone.get("/docs/search", params={"q": q})
        assert link in answer.text, q
    hostile = await anyone.get("/docs/search", params={"q": '"><script>alert(1)</script>'})
    assert "<script>alert" not in hostile.text
    for q in ("", " ", "x" * 5000, "%", "\\", "ſ", "a " * 2000):
        assert (await anyone.get("/docs/search", params={"q": q})).status_code == 200, q
    assert (await anyone.get("/docs/search?q=%00")).status_code == 422
    assert "Nothing was found" in (await anyone.get("/docs/search?q=zzzzzz")).text


async def test_the_search_of_the_dashboard_finds_the_documentation(pillarbox: World) -> None:
    ada = await logged_in(pillarbox, await a_person(await pillarbox.team(), "ada@harbor.example"))
    found = await ada.get("/dashboard/search?q=smarthost")
    assert "/docs/guide/index#5-let-mail-out" in found.text
    assert "/docs/search?q=smarthost" in found.text
    assert "/docs/api/post-emails-email-id-cancel" in (await ada.get("/dashboard/search?q=cancel+an")).text


async def test_searches_of_strangers_are_bounded(pillarbox: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """One is made at a time, and a network has so many in a minute."""
    anyone = pillarbox.client(None)
    monkeypatch.setattr(doc_pages, "WAIT", 0.05)
    async with pillarbox.app.need(doc_pages.Documentation)._searches:
        assert (await anyone.get("/docs/search?q=mail")).status_code == 503
    assert (await anyone.get("/docs/search?q=mail")).status_code == 200
    monkeypatch.setattr(doc_pages, "SEARCHES", 1)
    refused = await anyone.get("/docs/search?q=mail")
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) > 0


async def test_the_search_is_bounded(pillarbox: World) -> None:
    whole = await described(pillarbox)
    matches = doc_search.search(whole.reference, "e")
    assert len(matches.operations) == len(matches.sections) == doc_search.RESULTS


# Markdown ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "html"),
    [
        ("a <b>c</b>", "<p>a &lt;b&gt;c&lt;/b&gt;</p>\n"),
        ("<script>alert(1)</script>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>\n"),
        ("[a](javascript:alert(1))", "<p>[a](javascript:alert(1))</p>\n"),
        ("[a](nowhere.md)", "<p>a</p>\n"),
        ("[a](there.md#b)", '<p><a href="/docs/guide/there#b">a</a></p>\n'),
        ("[there.md](there.md)", '<p><a href="/docs/guide/there">There</a></p>\n'),
        ("![a](nowhere.png)", "<p></p>\n"),
        ("## A `b` C\n\n## A b C", '<h2 id="a-b-c">A <code>b</code> C</h2>\n<h2 id="a-b-c-1">A b C</h2>\n'),
        ("<!-- not here -->\nhere", "<p>here</p>\n"),
    ],
)
def test_markdown_is_shown_as_html(source: str, html: str) -> None:
    def target(href: str) -> DocLink | None:
        return (
            DocLink(f"/docs/guide/{href.replace('.md', '')}", "There") if href.startswith("there") else None
        )

    assert str(rendered(source, target).html) == html


def test_code_holds_what_it_held() -> None:
    page = rendered("```sh\n<!-- kept -->\n<b>\n```\n", lambda _: None)
    assert "&lt;!-- kept --&gt;\n&lt;b&gt;</pre>" in page.html


def test_anchors_are_those_of_the_guides_links() -> None:
    assert anchor_of("Why is it `PillarboxDiskShort`?") == "why-is-it-pillarboxdiskshort"


def test_a_shape_that_stands_twice_is_shown_once() -> None:
    inner = {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Node"}}}
    row = ShapeReader({"Node": inner}).row({"$ref": "#/components/schemas/Node"})
    [below] = row.fields
    assert (row.shape, below.shape, below.is_repeated, below.fields) == ("Node", "Node", True, ())


async def test_pages_are_in_the_readers_language_and_programs_read_english(pillarbox: World) -> None:
    browser, german = visit(pillarbox), {"accept-language": "de-DE,de;q=0.9"}
    for path in ("/docs", "/docs/browser", "/docs/guide/index", "/docs/search?q=mail"):
        for languages, code in (({}, "en"), (german, "de"), ({}, "en")):
            page = await browser.get(path, **languages)
            assert f'<html lang="{code}">' in page.text, path
            assert ("Anleitung und Referenz sind auf Englisch" in page.text) == (code == "de"), path
    assert "API-Referenz" not in (await browser.get("/llms.txt", **german)).text
