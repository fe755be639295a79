"""Code of the reference: each sample of an official SDK sends what its operation's example says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import msgspec
import pytest
import resend

from kit.brought import ROUTES, WEBHOOKS
from kit.node_packages import environment, packages, run_node
from pillarbox.dashboard.docs.reference import ApiReference, Operation
from pillarbox.dashboard.frame.code_samples import LONGEST_BODY, ApiExample, samples_of, shortened
from pillarbox.dashboard.frame.sdk_calls import SDK_CALLS, camel_keys
from pillarbox.kernel.http.openapi import document

URL = "http://127.0.0.1:9"
REFERENCE = ApiReference(msgspec.json.encode(document(ROUTES, URL, WEBHOOKS)), URL)
OPERATIONS = [operation for operation in REFERENCE.operations if REFERENCE.samples(operation)]
BY_SDK = [operation for operation in OPERATIONS if "import resend" in REFERENCE.samples(operation)[0].python]
PLAIN = [operation for operation in OPERATIONS if operation not in BY_SDK]

Sent = tuple[str, str, dict[str, str], Any]
"""A request: method, path, query and body."""


def wanted(operation: Operation) -> Sent:
    """What the sample's title and the example of the body say."""
    method, _, target = REFERENCE.samples(operation)[0].title.partition(" ")
    parts = urlsplit(target)
    return method, parts.path, dict(parse_qsl(parts.query)), REFERENCE.body_example(operation)


def assert_same(operation: Operation, sent: Sent) -> None:
    """SDKs may send ids among the fields as well, and an empty body where there is none."""
    method, path, query, body = wanted(operation)
    assert sent[:2] == (method, path), operation.slug
    assert {name: sent[2].get(name) for name in query} == query, operation.slug
    if isinstance(body, dict):
        assert {name: sent[3].get(name) for name in body} == body, operation.slug
    elif body is None:
        assert set((sent[3] or {}).values()) <= {*path.split("/")}, operation.slug
    else:
        assert sent[3] == body, operation.slug


class Recorder(resend.HTTPClient):
    """Keeps what the SDK sends."""

    def __init__(self) -> None:
        self.sent: list[Sent] = []

    def request(self, method: str, url: str, headers: Any, json: Any = None, **_: Any) -> Any:
        parts = urlsplit(url)
        self.sent.append((method.upper(), parts.path, dict(parse_qsl(parts.query)), json))
        return b"{}", 200, {"content-type": "application/json"}


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    made = Recorder()
    monkeypatch.setattr(resend, "api_key", "re_x")
    monkeypatch.setattr(resend, "api_url", URL)
    monkeypatch.setattr(resend, "default_http_client", made)
    yield made


@pytest.mark.parametrize("operation", BY_SDK, ids=lambda operation: operation.slug)
def test_a_sample_of_the_python_sdk_sends_its_example(recorder: Recorder, operation: Operation) -> None:
    exec(REFERENCE.samples(operation)[0].python, {})
    [sent] = recorder.sent
    assert_same(operation, sent)


def test_samples_of_the_node_sdk_send_their_examples(tmp_path: Path) -> None:
    packages("resend_sdk")
    lines = [REFERENCE.samples(operation)[0].node.replace("import {", "// import {") for operation in BY_SDK]
    program = tmp_path / "samples.mjs"
    program.write_text(NODE + "".join(f"await sample(async () => {{\n{line}\n}});\n" for line in lines) + END)
    home = tmp_path / "home"
    home.mkdir()
    answers = json.loads(run_node("resend_sdk", program, home, environment(home, RESEND_API_KEY="re_x")))
    assert len(answers) == len(BY_SDK)
    for operation, answer in zip(BY_SDK, answers, strict=True):
        assert "url" in answer[0], (operation.slug, answer)
        parts = urlsplit(answer[0]["url"])
        body = json.loads(answer[0]["body"]) if answer[0]["body"] else None
        assert_same(operation, (answer[0]["method"], parts.path, dict(parse_qsl(parts.query)), body))


NODE = """
import { Resend } from 'resend';
const all = [];
let sent;
globalThis.fetch = async (url, options) => {
  sent.push({ url: String(url), method: options.method, body: options.body ?? null });
  return new Response('{}', { status: 200, headers: { 'content-type': 'application/json' } });
};
async function sample(run) {
  sent = [];
  try { await run(); } catch (error) { sent.push({ error: String(error) }); }
  all.push(sent);
}
"""
END = "console.log(JSON.stringify(all));\n"


@pytest.mark.parametrize("operation", PLAIN, ids=lambda operation: operation.slug)
def test_a_plain_sample_sends_its_example(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, operation: Operation
) -> None:
    sent: list[dict[str, Any]] = []

    def request(method: str, url: str, **options: Any) -> None:
        sent.append({"method": method, "url": url, **options})

    (tmp_path / "contacts.csv").write_text("email\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RESEND_API_KEY", "re_x")
    monkeypatch.setattr(httpx, "request", request)
    exec(REFERENCE.samples(operation)[0].python, {})
    [found] = sent
    parts = urlsplit(found["url"])
    assert (found["method"], parts.path) == wanted(operation)[:2]
    assert ("headers" in found) is (operation.access is not None)
    assert found.get("json", found.get("data")) == wanted(operation)[3] or "files" in found


def test_the_table_names_routes_of_the_api() -> None:
    patterns = {
        (operation.method, operation.path.replace("{", "").replace("}", "")) for operation in OPERATIONS
    }
    assert len(BY_SDK) >= len(SDK_CALLS), "several addresses mean the same"
    assert len(patterns) == len(OPERATIONS)


def test_names_of_node() -> None:
    fields = {"reply_to": "a", "headers": {"x_y": "z"}, "steps": [{"config": {"event_name": "b"}}]}
    assert camel_keys(fields) == {
        "replyTo": "a",
        "headers": {"x_y": "z"},
        "steps": [{"config": {"eventName": "b"}}],
    }


def test_a_sample_holds_quotes_and_long_bodies() -> None:
    [sample] = samples_of([ApiExample("POST", "/emails", {}, {"subject": 'it\'s "late"'})], URL)
    assert "it'\\''s" in sample.curl
    [long] = samples_of([ApiExample("POST", "/emails", {}, {"html": "x" * 100_000})], URL)
    assert max(map(len, (long.curl, long.python, long.node))) < 5000


def test_a_large_body_is_cut_before_it_is_written() -> None:
    """What a sample shows of it is the same."""
    body = {"a": ["x" * 3000, {"b": "y" * 3000}], "c": "z" * 1_000_000, "d": list(range(100_000))}
    assert len(json.dumps(shortened(body))) < 4 * LONGEST_BODY
    [sample] = samples_of([ApiExample("POST", "/unknown", {}, body)], URL)
    assert json.dumps(body)[:LONGEST_BODY] + "…" in sample.curl
    deep: Any = "x"
    for _ in range(50_000):
        deep = [deep]
    assert len(samples_of([ApiExample("POST", "/unknown", {}, {"deep": deep})], URL)[0].curl) < 1000
    small = {"a": [1, None, True, "x"], "b": {}}
    assert shortened(small) == small
