"""Bad input gets a clear answer in time, writes nothing, and is no 500 (architecture 6.6, TRAP-09)."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kit.brought import ROUTES
from kit.client import error
from kit.dumps import counts
from kit.manual_world import manual_world
from kit.world import Team, World, mail
from pillarbox.kernel.http.protocol import ConnectionLimits, Protocol
from pillarbox.kernel.http.routing import Access, BodyMode

MIB = 1024 * 1024
PATIENCE = 10.0

FIELDS = (
    *("from", "to", "cc", "bcc", "reply_to", "subject", "html", "text", "headers", "attachments", "tags"),
    *("scheduled_at", "topic_id", "template"),
)

TORTURE: dict[str, bytes] = {
    "NUL": b'"a\\u0000b"',
    "a lone surrogate": b'"a\\ud800b"',
    "surrogates in the wrong order": b'"\\udc00\\ud800"',
    "a raw lone surrogate": b'"\xed\xa0\x80"',
    "a raw control character": b'"a\x01b"',
    "an overlong form": b'"\xc0\x80"',
    "NaN": b"NaN",
    "Infinity": b"-Infinity",
    "a number beyond double": b"1e400",
    "a huge number": b"1e308",
    "400 digits": b"7" * 400,
    "5,000 digits": b"7" * 5000,
    "an unfinished string": b'"',
    "10,000 nested arrays": b"[" * 10_000 + b"]" * 10_000,
    "10,000 nested objects": b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    "10,000 opened arrays": b"[" * 10_000,
    "65 nested arrays": b"[" * 65 + b"]" * 65,
    "a boolean": b"true",
    "NUL deep inside": b'[{"a":["\\u0000"]}]',
    "NUL as a key": b'{"\\u0000":"x"}',
}
"""What must not stand in any known field; each is 4xx in each of them."""


async def ask(team: Team, content: bytes, path: str = "/emails", method: str = "POST") -> httpx.Response:
    """One request that takes bounded time of the processor, answered in the contract's shape."""
    start = time.process_time()
    answer = await team.http.request(method, path, content=content)
    assert time.process_time() - start < PATIENCE, content[:80]
    return answer


def refused(answer: httpx.Response, what: object) -> None:
    status, _, message = error(answer)
    assert 400 <= status < 500, (what, status, message)
    assert len(message) < 400, what


async def test_no_field_takes_what_cannot_be_stored(pillarbox: World) -> None:
    team = await pillarbox.team()
    before = await counts(pillarbox.pool)
    whole = json.dumps(mail()).encode()
    for field in FIELDS:
        for name, value in TORTURE.items():
            body = b'%b,"%b":%b}' % (whole[:-1], field.encode(), value)
            refused(await ask(team, body), (field, name))
    for name, value in TORTURE.items():
        body = b'[%b,"subject":%b}]' % (whole[:-1], value)
        refused(await ask(team, body, "/emails/batch"), name)
    assert await counts(pillarbox.pool) == before


async def test_no_route_takes_a_body_that_is_not_sound(database_url: str, tmp_path: Path) -> None:
    """Generated from the route table: every route that reads JSON, before anything is looked up (API-01)."""
    bodies = [
        *TORTURE.values(),
        b"{",
        b"\xff",
        b"\xef\xbb\xbf{}",
        b"[[]]",
        b"7",
        b'"x"',
        b"null",
        b'{"a":1}x',
    ]
    async with manual_world(database_url, tmp_path) as pillarbox:
        team = await pillarbox.team()
        before = await counts(pillarbox.pool)
        for entry in ROUTES:
            if entry.needs is Access.PUBLIC or not entry.takes_body or entry.intake is BodyMode.RAW:
                continue
            path = entry.path.format(**dict.fromkeys(entry.parameters, str(uuid4())))
            for body in bodies:
                refused(await ask(team, body, path, entry.method), (path, body[:40]))
        assert await counts(pillarbox.pool) == before


async def test_the_examples_of_the_issue(pillarbox: World) -> None:
    """Issue 2, "Bad input": the documented status, name and message pattern, nothing written."""
    team = await pillarbox.team()
    before = await counts(pillarbox.pool)
    nested = await ask(team, b"[" * 10_000)
    assert error(nested)[:2] == (400, "validation_error")
    nested = await ask(team, b'{"to":' + b"[" * 10_000 + b"]" * 10_000 + b"}")
    assert error(nested) == (
        400,
        "validation_error",
        "The request body is nested more than 64 levels deep.",
    )
    many = [f"x{n}@quay.example" for n in range(51)]
    answer = await team.post("/emails", mail(to=many))
    assert error(answer)[:2] == (422, "validation_error")
    broken = mail(from_="Harbor\r\nBcc: x@evil.example <notes@harbor.example>")
    assert error(await team.post("/emails", broken))[:2] == (422, "validation_error")
    head = await raw(
        pillarbox, b"POST /emails HTTP/1.1\r\nHost: x\r\nX-\x00A: b\r\nContent-Length: 0\r\n\r\n"
    )
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b'"statusCode":400' in head
    assert await counts(pillarbox.pool) == before
    assert (await team.post("/emails", mail())).status_code == 200


async def test_sixty_megabytes_without_a_length(database_url: str, tmp_path: Path) -> None:
    """413 while streaming, and the connection is closed; 49 MB of the same are read and judged."""

    async def megabytes(count: int) -> AsyncIterator[bytes]:
        yield b'{"html":"'
        for _ in range(count):
            yield b"x" * MIB
        yield b'"}'

    async with manual_world(database_url, tmp_path) as pillarbox:
        team = await pillarbox.team()
        answer = await team.http.post("/emails", content=megabytes(60))
        assert error(answer)[:2] == (413, "validation_error")
        assert answer.headers["connection"] == "close"
        fits = await team.http.post("/emails", content=megabytes(49))
        assert error(fits) == (422, "missing_required_field", "Missing `from` field.")
        over = await team.http.post("/emails/batch", content=megabytes(26))
        assert error(over)[:2] == (413, "validation_error")
        assert (await team.get("/emails")).json()["data"] == []


async def test_half_a_body_and_silence(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """408 and closed; half a body and the end of the connection: nothing at all happens."""
    monkeypatch.setattr(Protocol, "limits", ConnectionLimits(body_seconds=0.3))
    async with manual_world(database_url, tmp_path) as pillarbox:
        team = await pillarbox.team()
        before = await counts(pillarbox.pool)
        body = json.dumps(mail()).encode()
        head = f"POST /emails HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {team.token}\r\n"
        sized = f"{head}Content-Length: {len(body) + 1}\r\n\r\n".encode() + body
        chunked = f"{head}Transfer-Encoding: chunked\r\n\r\n{len(body):x}\r\n".encode() + body + b"\r\n"
        for request in (sized, chunked):
            answer = await raw(pillarbox, request)
            assert answer.startswith(b"HTTP/1.1 408 ")
            assert b"connection: close" in answer
            await raw(pillarbox, request, leave=True)
        assert (await team.get("/emails")).json()["data"] == []
        assert await counts(pillarbox.pool) == before


async def test_bad_paths_queries_and_headers(pillarbox: World) -> None:
    team = await pillarbox.team()
    before = await counts(pillarbox.pool)
    for wrong in (
        "%00",
        "%ff",
        "%ED%A0%80",
        "..%2f..",
        "%25",
        "'--",
        "{email_id}",
        "a" * 3000,
        "\u0661" * 8,
    ):
        for path in (f"/emails/{wrong}", f"/emails/{wrong}/attachments/{wrong}", f"/domains/{wrong}"):
            refused(await team.get(path), path)
        for query in (
            f"limit={wrong}",
            f"after={wrong}",
            f"before={wrong}",
            f"limit=1&after={wrong}&after=",
        ):
            answer = await team.get(f"/emails?{query}")
            assert answer.status_code < 500, query
        assert (await team.get(f"/emails?unknown={wrong}")).status_code in (200, 422), wrong
    modes = [(b"x-batch-validation", b"\xff\xfe"), (b"x-batch-validation", b"strict\xe9")]
    for header in modes:
        answer = await team.http.post("/emails/batch", json=[mail()], headers=[header])
        assert error(answer)[:2] == (422, "validation_error")
        keyed = [header, (b"idempotency-key", b"k")]
        refused(await team.http.post("/emails/batch", json=[mail()], headers=keyed), header)
    assert await counts(pillarbox.pool) == before


# Fuzz ---------------------------------------------------------------------------------------------

NASTY = st.sampled_from(
    [
        *("", " ", "\r\n", "\n", "\t", "\x7f", "\x85", "\u2028", "\u202e", "\u200b", "\ufeff", "\ud800"),
        *("=?utf-8?q?=0d=0a?=", "=?utf-8?b?/w==?=", "=?x?", "\\", '"', '\\"', "<", ">", "<>", "@", ",", ";"),
        *("a@b", "a@quay.example", '"a b"@quay.example', "a@xn--zz.example", "ä@ö.example", "x" * 65),
        *("in 1 hour", "now", "2026-10-03", "http://127.0.0.1/", "a.exe", "aGk=", "text/plain; a=b"),
        *("\N{PILE OF POO}" * 40, "w " * 500, "x" * 1200, "İ", "ß", "\u0301", "0", "-1", "null"),
    ]
)
TEXT = st.lists(st.one_of(NASTY, st.text(max_size=12)), max_size=4).map("".join)
CLEAN = TEXT.map(lambda text: "".join(each for each in text if each.isprintable()))
"""No line breaks and no surrogates, so that most of it is taken and has to be composed."""
SCALAR = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.just(10**400),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXT,
)
JSON = st.recursive(
    SCALAR,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXT, inner, max_size=4)),
    max_leaves=12,
)
MAILBOX = st.builds(
    lambda name, local, host: f"{name} <{local}@{host}>",
    st.one_of(st.just("Ann"), TEXT, CLEAN, CLEAN.map(lambda text: f'"{text}"')),
    st.one_of(st.just("ann"), st.text(min_size=1, max_size=8)),
    st.sampled_from(["quay.example", "münchen.example", "resend.dev", "QUAY.example", "localhost"]),
)
ATTACHMENT = st.fixed_dictionaries(
    {"content": st.one_of(st.just("aGk="), st.lists(st.integers(0, 255), max_size=9), JSON)},
    optional={
        "filename": st.one_of(TEXT, SCALAR),
        "content_type": st.one_of(
            st.sampled_from(["text/plain", "message/rfc822", "a/b; c=d"]), TEXT, SCALAR
        ),
        "content_id": st.one_of(st.text(min_size=1, max_size=9), SCALAR),
    },
)
LIKELY: dict[str, st.SearchStrategy[Any]] = {
    "from": MAILBOX,
    "to": st.one_of(MAILBOX, st.lists(MAILBOX, max_size=3)),
    "cc": st.lists(MAILBOX, max_size=2),
    "bcc": st.lists(MAILBOX, max_size=2),
    "reply_to": MAILBOX,
    "subject": st.one_of(TEXT, CLEAN, CLEAN),
    "html": TEXT.map(lambda text: f"<p>{text}</p>"),
    "text": TEXT,
    "headers": st.dictionaries(
        st.one_of(st.sampled_from(["X-A", "References", "List-Id"]), TEXT), st.one_of(TEXT, CLEAN), max_size=3
    ),
    "attachments": st.lists(ATTACHMENT, max_size=2),
    "tags": st.lists(
        st.fixed_dictionaries({"name": st.one_of(st.just("a"), TEXT), "value": TEXT}), max_size=2
    ),
    "scheduled_at": TEXT,
    "topic_id": st.one_of(st.uuids().map(str), TEXT),
    "template": st.fixed_dictionaries({"id": TEXT}),
}
CHANGES = st.lists(st.sampled_from(FIELDS), min_size=1, max_size=3, unique=True).flatmap(
    lambda names: st.fixed_dictionaries({name: st.one_of(LIKELY[name], LIKELY[name], JSON) for name in names})
)
"""A few fields at a time: with all of them, hardly one request in a hundred would be right."""


@dataclass
class Fuzzed:
    """A team in a world whose loop the test turns by hand, since hypothesis is not asynchronous."""

    runner: asyncio.Runner
    pillarbox: World
    team: Team

    def post(self, path: str, body: Any) -> httpx.Response:
        return self.runner.run(ask(self.team, json.dumps(body).encode(), path))


@pytest.fixture
def fuzzed(database_url: str, tmp_path: Path) -> Iterator[Fuzzed]:
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        pillarbox = runner.run(stack.enter_async_context(manual_world(database_url, tmp_path)))
        yield Fuzzed(runner, pillarbox, runner.run(pillarbox.team()))
        runner.run(stack.aclose())


def test_any_json_in_any_field_is_200_or_4xx_and_what_is_taken_can_be_sent(fuzzed: Fuzzed) -> None:
    """And every email that was accepted is composed and delivered: nothing stays queued for ever (API-01)."""

    @settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
    @given(CHANGES)
    def run(changes: dict[str, Any]) -> None:
        answer = fuzzed.post("/emails", {**mail(), **changes})
        if answer.status_code == 200:
            assert list(answer.json()) == ["id"]
            UUID(answer.json()["id"])
        else:
            refused(answer, changes)

    run()
    fuzzed.runner.run(_all_leave(fuzzed.pillarbox))


PARTS = st.lists(
    st.one_of(
        TEXT, st.sampled_from(["{{{A}}}", "{{{N|x}}}", "{{{EMAIL}}}", "{{{UNSUBSCRIBE_URL}}}", "{{{", "}}}"])
    ),
    max_size=6,
).map("".join)
VALUES = st.dictionaries(
    st.one_of(st.sampled_from(["A", "N"]), TEXT),
    st.one_of(TEXT, st.integers(), st.floats(allow_nan=False, allow_infinity=False), JSON),
    max_size=3,
)
TEMPLATES = st.fixed_dictionaries(
    {"name": st.one_of(st.just("T"), TEXT), "html": PARTS},
    optional={
        "alias": TEXT,
        "from": MAILBOX,
        "subject": PARTS,
        "reply_to": MAILBOX,
        "text": PARTS,
        "variables": st.one_of(
            st.just([{"key": "A", "type": "string"}, {"key": "N", "type": "number", "fallback_value": 0.5}]),
            JSON,
        ),
    },
)


def test_any_template_is_taken_or_refused_and_what_is_taken_can_be_sent(fuzzed: Fuzzed) -> None:
    """Made, published, and sent with any values."""

    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.one_of(TEMPLATES, JSON), VALUES)
    def run(template: Any, values: dict[str, Any]) -> None:
        made = fuzzed.post("/templates", template)
        if made.status_code != 201:
            refused(made, template)
            return
        template_id = made.json()["id"]
        published = fuzzed.post(f"/templates/{template_id}/publish", {})
        assert published.status_code in (200, 422)
        email = {**mail(html=None), "template": {"id": template_id, "variables": values}}
        sent = fuzzed.post("/emails", {key: value for key, value in email.items() if value is not None})
        if sent.status_code != 200:
            refused(sent, values)

    run()
    fuzzed.runner.run(_all_leave(fuzzed.pillarbox))


def test_any_json_as_a_batch(fuzzed: Fuzzed) -> None:
    """Permissive: each item is in `data` or in `errors`, never both, never neither."""

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        st.lists(st.one_of(JSON, CHANGES.map(lambda changes: {**mail(), **changes})), min_size=1, max_size=5)
    )
    def run(items: list[Any]) -> None:
        headers = {"x-batch-validation": "permissive"}
        body = json.dumps(items).encode()
        answer = fuzzed.runner.run(fuzzed.team.http.post("/emails/batch", content=body, headers=headers))
        if answer.status_code == 200:
            found = answer.json()
            assert len(found["data"]) + len(found["errors"]) == len(items)
        else:
            assert error(answer)[0] in (400, 422)

    run()
    fuzzed.runner.run(_all_leave(fuzzed.pillarbox))


async def _all_leave(pillarbox: World) -> None:
    clock: Any = pillarbox.clock
    clock.advance(31 * 24 * 3600)
    while await pillarbox.turn():
        pass
    rows = await pillarbox.pool.fetch(
        """
        SELECT r.state, e.subject, e.sender, e.to_list, c.headers
          FROM recipients r
          JOIN emails e ON e.team_id = r.team_id AND e.id = r.email_id
          JOIN contents c ON c.team_id = e.team_id AND c.id = e.content_id
         WHERE r.state NOT IN ('delivered', 'bounced', 'complained', 'suppressed')
        """
    )
    assert not rows, dict(rows[0])


# Parts --------------------------------------------------------------------------------------------


async def raw(pillarbox: World, data: bytes, *, leave: bool = False) -> bytes:
    """Everything the server says to these bytes until it closes; with `leave` the client goes first."""
    host, port = pillarbox.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(data)
    await writer.drain()
    try:
        return b"" if leave else await asyncio.wait_for(reader.read(), PATIENCE)
    finally:
        writer.close()
