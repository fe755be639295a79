"""Which variables a template may declare (templates.md 4)."""

from __future__ import annotations

from typing import Any

from kit.client import error
from templates.conftest import Place
from templates.test_templates import WANTED, a_team, changed, made, shown

KEYS = [
    ([{"key": "a b", "type": "string"}], "variables[0].key"),
    ([{"key": "k" * 51, "type": "string"}], "variables[0].key"),
    ([{"key": "", "type": "string"}], "variables[0].key"),
    ([{"key": "é", "type": "string"}], "variables[0].key"),
    ([{"type": "string"}], "variables[0].key"),
    ([{"key": "A"}], "variables[0].type"),
    ([{"key": "A", "type": "boolean"}], "variables[0].type"),
    ([{"key": "A", "type": "object"}], "variables[0].type"),
    ([{"key": "A", "type": "list"}], "variables[0].type"),
    ([{"key": "A", "type": "string", "fallback_value": 1}], "variables[0].fallback_value"),
    ([{"key": "A", "type": "string", "fallback_value": "x" * 2001}], "variables[0].fallback_value"),
    ([{"key": "A", "type": "number", "fallback_value": "1"}], "variables[0].fallback_value"),
    ([{"key": "A", "type": "number", "fallback_value": True}], "variables[0].fallback_value"),
    ([{"key": "A", "type": "number", "fallback_value": 2**53}], "variables[0].fallback_value"),
    ([{"key": "A", "type": "number", "fallback_value": 10**400}], "variables[0].fallback_value"),
    ([{"key": "A", "type": "number", "fallback_value": []}], "variables[0].fallback_value"),
    ([{"key": "A", "type": "string"}, {"key": "A", "type": "number"}], "variables[1].key"),
    ([{"key": f"K{n}", "type": "string"} for n in range(51)], "variables"),
    ([7], "variables[0]"),
    *(
        ([{"key": word, "type": "string"}], "variables[0].key")
        for word in (
            *("FIRST_NAME", "LAST_NAME", "EMAIL", "contact", "this", "SERVICE_UNSUBSCRIBE_URL"),
            *("PILLARBOX_UNSUBSCRIBE_URL", "RESEND_UNSUBSCRIBE_URL", "UNSUBSCRIBE_URL"),
        )
    ),
]


async def test_variables_that_cannot_be_declared(place: Place) -> None:
    """templates.md 3."""
    async with a_team(place) as team:
        for variables, field in KEYS:
            answer = await team.post("/templates", {"name": "Plain", "html": "", "variables": variables})
            assert answer.status_code == 422
            assert f"`{field}`" in error(answer)[2], answer.text


async def test_variables_that_can(place: Place) -> None:
    """templates.md 3: what is declared need not be used, and `first_name` is not reserved."""
    async with a_team(place) as team:
        variables: list[dict[str, Any]] = [{"key": f"K{n}", "type": "string"} for n in range(46)]
        variables += [
            {"key": "k" * 50, "type": "string", "fallback_value": "x" * 2000},
            {"key": "first_name", "type": "string", "fallback_value": ""},
            {"key": "k0", "type": "number", "fallback_value": -(2**53) + 1},
            {"key": "n", "type": "number", "fallback_value": 0.5},
        ]
        html = (
            "{{{K1}}} {{{first_name}}} {{{contact.anything.at.all}}} {{{EMAIL}}} {{{this}}} {{X}} {{{#each}}}"
        )
        template = await shown(team, await made(team, html=html, variables=variables))
        assert [one["key"] for one in template["variables"]] == [one["key"] for one in variables]
        assert [one["fallback_value"] for one in template["variables"][46:]] == [
            "x" * 2000,
            "",
            -(2**53) + 1,
            0.5,
        ]


async def test_old_content_may_not_be_left_with_an_undeclared_variable(place: Place) -> None:
    async with a_team(place) as team:
        template_id = await made(team, **WANTED)
        before = await shown(team, template_id)
        for wanted in ({"variables": []}, {"variables": None}, {"html": None}, {"html": "{{{Y}}}"}):
            answer = await team.call("PATCH", f"/templates/{template_id}", wanted)
            assert answer.status_code == 422, (wanted, answer.text)
            assert error(answer)[1] == "validation_error"
        assert await shown(team, template_id) == before
        await changed(team, template_id, variables=[], html="<p>Hello</p>", subject="Hello")
