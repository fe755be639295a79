"""Mail that is made of templates (templates.md 5 to 8), from the request to the server that gets it."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from kit.client import error
from kit.manual_world import parsed, relayed_world
from kit.smtp_sink import Message, Sink
from kit.webhooks import hook
from kit.world import Team

URL = "https://mail.harbor.example"
VALIDATION = (422, "validation_error")
ADA = {"to": "ada@quay.example"}
PATIENCE = 10.0
"""Seconds of the processor, for what takes less than one."""


@asynccontextmanager
async def opened_harbor(database_url: str, tmp_path: Path) -> AsyncIterator[tuple[Team, Sink]]:
    """A team whose mail goes to a server in the test."""
    async with relayed_world(database_url, tmp_path, public_url=URL) as (pillarbox, sink):
        team = await pillarbox.team()
        await team.domain()
        yield team, sink


@pytest.fixture
def harbor(database_url: str, tmp_path: Path) -> AbstractAsyncContextManager[tuple[Team, Sink]]:
    return opened_harbor(database_url, tmp_path)


async def live(team: Team, **fields: Any) -> str:
    """The id of a template that was published."""
    wanted = {"name": "T", "from": "Harbor <t@harbor.example>", "subject": "Hello", "html": "<p>x</p>"}
    made = await team.post("/templates", wanted | fields)
    assert made.status_code == 201, made.text
    template_id = str(made.json()["id"])
    answer = await team.post(f"/templates/{template_id}/publish")
    assert answer.status_code == 200, answer.text
    return template_id


async def send(team: Team, template: str, variables: Any = None, **fields: Any) -> Any:
    """The answer to an email of this template."""
    use = {"id": template} if variables is None else {"id": template, "variables": variables}
    return await team.post("/emails", {**ADA, "template": use, **fields})


async def shown(team: Team, template: str, variables: Any = None, **fields: Any) -> dict[str, Any]:
    """An email of this template that was accepted."""
    answer = await send(team, template, variables, **fields)
    assert answer.status_code == 200, answer.text
    return await team.email(answer.json()["id"])


def string(key: str, fallback: str | None = None) -> dict[str, Any]:
    return {"key": key, "type": "string", "fallback_value": fallback}


def number(key: str, fallback: float | None = None) -> dict[str, Any]:
    return {"key": key, "type": "number", "fallback_value": fallback}


def body(message: Message, kind: str) -> str:
    part = parsed(message).get_body((kind,))
    assert part is not None
    return str(part.get_content()).strip()


async def test_the_example_of_the_contract(harbor: tuple[Team, Sink]) -> None:
    team, sink = harbor
    template_id = await live(
        team,
        alias="order-shipped",
        subject="Order {{{ORDER_NO}}} is on its way",
        html="<p>Hi {{{CUSTOMER|friend}}}, {{{COUNT}}} item(s) left today.</p>",
        reply_to=["a@harbor.example", "B <b@harbor.example>"],
        variables=[string("ORDER_NO"), string("CUSTOMER", "there"), number("COUNT", 1)],
    )
    made_hook = await hook(team, "email.delivered")
    answer = await send(team, "order-shipped", {"ORDER_NO": "H-204", "COUNT": 3})
    email = await team.email(answer.json()["id"])
    assert answer.text == f'{{"id":"{email["id"]}"}}'
    assert email["from"] == "Harbor <t@harbor.example>"
    assert email["subject"] == "Order H-204 is on its way"
    assert email["html"] == "<p>Hi friend, 3 item(s) left today.</p>"
    assert email["text"] == "Hi friend, 3 item(s) left today."
    assert email["reply_to"] == ["a@harbor.example", "B <b@harbor.example>"]
    await team.world.turn()
    [message] = await sink.messages(1)
    assert parsed(message)["subject"] == "Order H-204 is on its way"
    assert body(message, "html") == email["html"]
    [event] = await made_hook.payloads()
    assert event["data"]["template_id"] == template_id
    assert list(event["data"]).index("template_id") == list(event["data"]).index("subject") + 1


async def test_what_a_variable_stands_for(harbor: tuple[Team, Sink]) -> None:
    """templates.md 5: the value, the fallback in the placeholder, then that of the variable; a
    value is never searched again."""
    team, _ = harbor
    name = await live(
        team,
        html="{{{A}}} {{{A|in}}} {{{A|}}}.",
        text="{{{N}}} {{{N|x}}}",
        variables=[string("A", "own"), number("N", 0.1), string("OTHER", "no"), string("UNUSED")],
    )
    cases: list[tuple[Any, str, str]] = [
        ({"A": "v", "N": 2}, "v v v.", "2 2"),
        ({"A": "", "N": 25.0}, "  .", "25 25"),
        ({"A": None}, "own in .", "0.1 x"),
        ({}, "own in .", "0.1 x"),
        ({"A": "{{{OTHER}}}", "N": -0.0}, "{{{OTHER}}} {{{OTHER}}} {{{OTHER}}}.", "0 0"),
        ({"A": "<b>", "N": 1e15}, "<b> <b> <b>.", "1000000000000000 1000000000000000"),
        ({"A": "x", "N": 1, "UNKNOWN": "y", "ANOTHER": 3}, "x x x.", "1 1"),
    ]
    for variables, html, text in cases:
        email = await shown(team, name, variables)
        assert (email["html"], email["text"]) == (html, text), variables
    assert (await shown(team, name))["html"] == "own in ."


async def test_values_that_are_refused(harbor: tuple[Team, Sink]) -> None:
    team, _ = harbor
    name = await live(team, html="{{{A}}} {{{N}}}", variables=[string("A"), number("N", 1)])
    missing = "The template needs a value for the variable `A`: it has no fallback."
    cases: list[tuple[Any, str]] = [
        ({}, missing),
        (None, missing),
        ({"A": None}, missing),
        ({"A": 1}, "Invalid `template.variables.A` field. It must be a string."),
        ({"A": "x", "N": "1"}, "Invalid `template.variables.N` field. It must be a number."),
        ({"A": True}, "Invalid `template.variables.A` field. "),
        ({"A": ["x"]}, "Invalid `template.variables.A` field. "),
        ({"A": {"x": 1}}, "Invalid `template.variables.A` field. "),
        ({"A": "x" * 2001}, "Invalid `template.variables.A` field. Use at most 2000 characters."),
        ({"A": "x", "N": 2**53}, "Invalid `template.variables.N` field. Use a number from "),
        ({"A": "x", "N": -(10**400)}, "Invalid `template.variables.N` field. Use a number from "),
        ({"A": "x", "U": 10**400}, "Invalid `template.variables.U` field. Use a number from "),
        ({"A": "x", "U": True}, "Invalid `template.variables.U` field. "),
        ({"A": "x", "a b": "x"}, "Invalid `template.variables.a b` field. "),
        ({"A": "x", "k" * 51: "x"}, "Invalid `template.variables."),
        ({"A": "x", "EMAIL": "x"}, "Invalid `template.variables.EMAIL` field. `EMAIL` is reserved."),
        ({"A": "x", "this": None}, "Invalid `template.variables.this` field. `this` is reserved."),
        ([], "Invalid `template.variables` field. Use an object."),
        ("x", "Invalid `template.variables` field. Use an object."),
    ]
    for variables, message in cases:
        answer = await send(team, name, variables)
        assert error(answer)[:2] == VALIDATION, (variables, answer.text)
        assert error(answer)[2].startswith(message), (variables, answer.text)
    assert (await team.get("/emails")).json()["data"] == []


async def test_which_templates_can_be_used(harbor: tuple[Team, Sink]) -> None:
    team, _ = harbor
    other = await team.world.team("Quay")
    theirs = await live(other, alias="theirs")
    draft = (await team.post("/templates", {"name": "D", "html": "x", "alias": "draft"})).json()["id"]
    for name in (theirs, "theirs", str(uuid4()), "Draft", "a b", "x" * 1000):
        assert error(await send(team, name)) == (404, "not_found", "Template not found"), name
    for name in (draft, "draft"):
        answer = error(await send(team, name, **{"from": "t@harbor.example", "subject": "x"}))
        assert answer[:2] == VALIDATION
        assert "Publish it first" in answer[2]
    name = await live(team)
    for fields in ({"html": "x"}, {"text": "x"}, {"text": ""}, {"html": ""}, {"react": {}}):
        assert error(await send(team, name, **fields))[:2] == VALIDATION, fields
    assert (await send(team, name, html=None, text=None)).status_code == 200
    assert (await send(team, name.upper())).status_code == 200


async def test_the_request_wins_over_the_template(harbor: tuple[Team, Sink]) -> None:
    team, _ = harbor
    name = await live(team, reply_to="own@harbor.example", html="{{{A}}}", variables=[string("A")])
    email = await shown(
        team,
        name,
        {"A": "v"},
        **{
            "from": "Me <me@harbor.example>",
            "subject": "{{{A}}} {{{B}}} {{{EMAIL}}}",
            "reply_to": "r@q.example",
        },
    )
    assert email["from"] == "Me <me@harbor.example>"
    assert email["subject"] == "v {{{B}}} ada@quay.example"
    assert email["reply_to"] == ["r@q.example"]
    email = await shown(team, name, {"A": "v"}, headers={"Reply-To": "h@q.example"})
    assert email["reply_to"] == ["h@q.example"]
    bare = await live(team, **{"from": None, "subject": None})
    missing = (422, "missing_required_field")
    assert error(await send(team, bare)) == (*missing, "Missing `from` field.")
    answer = await send(team, bare, **{"from": "t@harbor.example"})
    assert error(answer) == (*missing, "Missing `subject` field.")
    assert error(await send(team, name, {}, to=None)) == (*missing, "Missing `to` field.")
    answer = await send(team, await live(team, **{"from": "t@other.example"}))
    assert answer.status_code == 403


async def test_text_of_templates(harbor: tuple[Team, Sink]) -> None:
    """templates.md 7: absent, null, empty, its own."""
    team, _ = harbor
    html = "<p>Hi <b>{{{A}}}</b></p>"
    variables = [string("A")]
    for fields, text in (
        ({}, "Hi x < y"),
        ({"text": None}, "Hi x < y"),
        ({"text": ""}, None),
        ({"text": "Own {{{A}}}"}, "Own <i>x &lt; y</i>"),
    ):
        name = await live(team, html=html, variables=variables, **fields)
        email = await shown(team, name, {"A": "<i>x &lt; y</i>"})
        assert email["text"] == text, fields
        assert email["html"] == "<p>Hi <b><i>x &lt; y</i></b></p>"


async def test_a_value_cannot_add_a_header(harbor: tuple[Team, Sink]) -> None:
    """templates.md 5, MSG-15."""
    team, sink = harbor
    name = await live(team, subject="Order {{{A}}}", html="x", variables=[string("A")])
    email = await shown(team, name, {"A": "1\r\nBcc: eve@quay.example\u2028\u202e"})
    assert email["subject"] == "Order 1 Bcc: eve@quay.example \u202e"
    long = await shown(team, name, {"A": "é" * 2000})
    assert long["subject"] == "Order " + "é" * 992
    await team.world.turn()
    messages = await sink.messages(2)
    assert sorted(message.recipients for message in messages) == [["ada@quay.example"]] * 2
    assert all(parsed(message)["bcc"] is None for message in messages)


async def test_mail_keeps_what_it_was_accepted_with(harbor: tuple[Team, Sink]) -> None:
    """templates.md 1: drafts are not sent; what happens to a template later changes no email."""
    team, sink = harbor
    name = await live(team, html="first", alias="once")
    scheduled = await shown(team, "once", scheduled_at="in 1 hour")
    await team.call("PATCH", "/templates/once", {"html": "second"})
    assert (await shown(team, "once"))["html"] == "first"
    await team.post("/templates/once/publish")
    assert (await shown(team, "once"))["html"] == "second"
    await team.call("DELETE", f"/templates/{name}")
    assert (await send(team, "once")).status_code == 404
    assert (await team.email(scheduled["id"]))["html"] == "first"
    assert sink is not None


async def test_a_batch_renders_each_item(harbor: tuple[Team, Sink]) -> None:
    team, _ = harbor
    name = await live(team, html="{{{A}}}", variables=[string("A")])

    def item(use: str, **variables: Any) -> dict[str, Any]:
        return {**ADA, "template": {"id": use, "variables": variables}}

    plain = {**ADA, "from": "t@harbor.example", "subject": "s", "html": "plain"}
    items = [item(name, A="one"), plain, item(name), item("unknown"), item(name, A="two")]
    answer = await team.post("/emails/batch", items)
    assert error(answer)[0] == 422
    assert error(answer)[2].startswith("[2] The template needs a value for the variable `A`")
    assert (await team.get("/emails")).json()["data"] == []
    answer = await team.post("/emails/batch", items, x_batch_validation="permissive")
    assert answer.status_code == 200
    assert [(one["index"], one["message"][:12]) for one in answer.json()["errors"]] == [
        (2, "The template"),
        (3, "Template not"),
    ]
    emails = [await team.email(one["id"]) for one in answer.json()["data"]]
    assert [email["html"] for email in emails] == ["one", "plain", "two"]


async def test_a_replay_returns_the_first_email(harbor: tuple[Team, Sink]) -> None:
    team, _ = harbor
    name = await live(team, html="first", alias="once")
    request = {**ADA, "template": {"id": "once"}}
    first = await team.post("/emails", request, idempotency_key="k")
    await team.call("PATCH", f"/templates/{name}", {"html": "second"})
    await team.post("/templates/once/publish")
    again = await team.post("/emails", request, idempotency_key="k")
    assert again.json() == first.json()
    assert (await team.email(first.json()["id"]))["html"] == "first"


async def test_bodies_that_become_too_large(harbor: tuple[Team, Sink]) -> None:
    team, _ = harbor
    html = "x" * (9 * 1024 * 1024) + "{{{A}}}" * 600
    name = await live(team, html=html, text="", variables=[string("A")])
    answer = await send(team, name, {"A": "y" * 2000})
    assert error(answer)[:2] == VALIDATION
    assert (await send(team, name, {"A": "y"})).status_code == 200
    items = [{**ADA, "template": {"id": name, "variables": {"A": "y"}}}] * 3
    answer = await team.post("/emails/batch", items)
    assert error(answer) == (*VALIDATION, "[2] Invalid `template` field. " + TOO_LARGE)


TOO_LARGE = "The templates of one request may have 25 MB together."


async def test_a_batch_of_a_large_template_is_not_read_anew_for_each_item(harbor: tuple[Team, Sink]) -> None:
    """What cannot be rendered is charged as what can: a few items are enough to know it."""
    team, _ = harbor
    html = "<p>y</p>" * (1024 * 1024) + "{{{A}}}"
    name = await live(team, html=html, text="", variables=[string("A")])
    items = [{**ADA, "template": {"id": name}}] * 100
    start = time.process_time()
    answer = await team.post("/emails/batch", items, x_batch_validation="permissive")
    assert time.process_time() - start < PATIENCE
    missing = "The template needs a value for the variable `A`: it has no fallback."
    too_large = "Invalid `template` field. " + TOO_LARGE
    assert [one["message"] for one in answer.json()["errors"]] == [missing] * 3 + [too_large] * 97


async def test_the_log_shows_the_request_as_it_was(harbor: tuple[Team, Sink]) -> None:
    team, _ = harbor
    name = await live(team, html="<p>{{{A}}}</p>", variables=[string("A")])
    answer = await send(team, name, {"A": "secret value"})
    log = (await team.get(f"/logs/{answer.headers['x-request-id']}")).json()
    asked = log["request_body"]
    assert (asked if isinstance(asked, dict) else json.loads(asked)) == {
        **ADA,
        "template": {"id": name, "variables": {"A": "secret value"}},
    }


@pytest.mark.parametrize("own_text", [True, False], ids=["own text", "text of the html"])
@pytest.mark.parametrize(
    "tag", ["<b>x</b>", "x", '<a href="https://a.example/">x</a>'], ids=["markup", "text", "links"]
)
async def test_small_templates_that_render_to_much_leave_the_event_loop_free(
    harbor: tuple[Team, Sink], own_text: bool, tag: str
) -> None:
    """templates.md 8: what is rendered is charged before it is rendered, not by the event loop. A batch of
    200 kB that would render to 400 MB is refused beyond 25 MB, and its refused items cost next to nothing."""
    team, _ = harbor
    part = "{{{V}}}" * 1000
    template = await live(team, html=part, text=part if own_text else None, variables=[string("V")])
    value = (tag * 2000)[: 2000 // len(tag) * len(tag)]
    batch = [{**ADA, "template": {"id": template, "variables": {"V": value}}}] * 100
    before = time.thread_time()
    answer = await team.post("/emails/batch", batch, **{"x-batch-validation": "permissive"})
    spent = time.thread_time() - before
    assert answer.status_code == 200, answer.text
    refused = answer.json()["errors"]
    assert len(answer.json()["data"]) == 6
    assert {fault["message"] for fault in refused} == {
        "Invalid `template` field. The templates of one request may have 25 MB together."
    }
    assert spent < PATIENCE / 10, "the event loop renders by itself"


async def test_an_item_that_is_refused_is_charged_for_what_was_read(harbor: tuple[Team, Sink]) -> None:
    """A missing variable at the end of a large template: so many of them are read as the budget allows."""
    team, _ = harbor
    html = "<p>x</p>" * 400_000 + "{{{V}}}"
    template = await live(team, html=html, variables=[string("V")])
    batch = [{**ADA, "template": {"id": template}}] * 20
    answer = await team.post("/emails/batch", batch, **{"x-batch-validation": "permissive"})
    messages = [fault["message"] for fault in answer.json()["errors"]]
    too_large = "Invalid `template` field. The templates of one request may have 25 MB together."
    assert [message == too_large for message in messages] == [False] * 8 + [True] * 12
