"""`pillarbox templates list`, `show` and `render`."""

from __future__ import annotations

import asyncio
from email.parser import BytesParser
from email.policy import default

import pytest

from cli.conftest import Installation
from kit.world import world

HTML = (
    "<p>Hi {{{FIRST_NAME|friend}}}, {{{COUNT}}} &amp; {{{WORD}}} "
    '<a href="{{{UNSUBSCRIBE_URL}}}">leave</a></p>'
)


@pytest.fixture
def templates(harbor: Installation) -> Installation:
    asyncio.run(fill(harbor))
    return harbor


async def fill(harbor: Installation) -> None:
    """A team with a published template that has a newer draft, and one that was never published."""
    async with world(harbor.url, harbor.folder, started=False) as here:
        team = await here.team("Letters")
        wanted = {
            "name": "Order \x1b[31m",
            "alias": "order",
            "from": "Harbor <t@harbor.example>",
            "subject": "{{{COUNT}}} for you",
            "html": HTML,
            "variables": [
                {"key": "COUNT", "type": "number", "fallback_value": 1},
                {"key": "WORD", "type": "string"},
            ],
        }
        template_id = (await team.post("/templates", wanted)).json()["id"]
        await team.post("/templates/order/publish")
        await team.call("PATCH", f"/templates/{template_id}", {"subject": "Newer"})
        await team.post("/templates", {"name": "Bare", "html": "<p>bare</p>"})
        await team.post("/contacts", {"email": "ada@quay.example", "first_name": "<Ada>"})


def test_templates_are_listed(templates: Installation) -> None:
    found = templates.json("templates", "list", "--team", "Letters")["data"]
    assert [(one["alias"], one["status"], one["has_draft"]) for one in found] == [
        (None, "draft", True),
        ("order", "published", True),
    ]
    shown = templates.run("templates", "list", "--team", "Letters")
    assert shown.exit_code == 0
    assert shown.stdout.splitlines()[0].split() == ["Id", "Alias", "Name", "Status", "Draft", "Changed"]
    assert "\x1b" not in shown.stdout
    empty = templates.run("templates", "list", "--team", "Harbor")
    assert empty.stdout == "The team 'Harbor' has no templates.\n"


def test_a_template_is_shown(templates: Installation) -> None:
    shown = templates.run("templates", "show", "order", "--team", "Letters")
    assert shown.exit_code == 0
    assert "There is a draft that is newer" in shown.stdout
    assert "Subject: Newer" in shown.stdout
    assert "COUNT" in shown.stdout
    found = templates.json("templates", "show", "order", "--team", "Letters")
    assert (found["object"], found["subject"]) == ("template", "Newer")
    unknown = templates.run("templates", "show", "other", "--team", "Letters")
    assert (unknown.exit_code, unknown.stderr) == (1, "pillarbox: There is no template 'other'.\n")
    strange = templates.run("templates", "show", "\udcff", "--team", "Letters")
    assert (strange.exit_code, strange.stderr) == (1, "pillarbox: A value of the command line is no UTF-8.\n")


def test_mail_is_rendered_as_it_would_go_out(templates: Installation) -> None:
    words = ("templates", "render", "order", "--team", "Letters", "--set", "WORD=x", "--set", "COUNT=2.50")
    shown = templates.run(*words, "--contact", "ada@quay.example")
    assert shown.exit_code == 0, shown.stderr
    mail = BytesParser(policy=default).parsebytes(shown.stdout.encode())
    assert mail["subject"] == "2.5 for you"
    assert mail["to"] == "ada@quay.example"
    html = mail.get_body(("html",))
    assert html is not None
    assert 'Hi &lt;Ada&gt;, 2.5 &amp; x <a href="http' in html.get_content()
    plain = mail.get_body(("plain",))
    assert plain is not None
    assert plain.get_content().startswith("Hi <Ada>, 2.5 & x leave (http")
    found = templates.json(*words, "--draft")
    assert found["subject"] == "Newer"
    assert found["text"].startswith("Hi friend, 2.5 & x leave (")


def test_mail_that_cannot_be_rendered(templates: Installation) -> None:
    for words, sentence in (
        (["order"], "The template needs a value for the variable `WORD`"),
        (["order", "--set", "WORD"], "--set 'WORD' is not of the form KEY=VALUE."),
        (["order", "--set", "WORD=x", "--set", "COUNT=many"], "Invalid `template.variables.COUNT` field."),
        (["order", "--set", "WORD=\udcff"], "The value of --set 'WORD' is no UTF-8."),
        (["order", "--set", "\udcff=x"], "template.variables._"),
        (["\udcff"], "A value of the command line is no UTF-8."),
        (["other"], "There is no template 'other'."),
    ):
        shown = templates.run("templates", "render", *words, "--team", "Letters")
        assert shown.exit_code == 1
        assert sentence in shown.stderr
