"""What holds for every tool: names, schemas, marks, and that nothing is loaded before it is asked for."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import jsonschema_rs
import pytest

from kit.brought import CAPTURE_ROUTES, ROUTES
from pillarbox.kernel.http.routing import RouteTable
from pillarbox.mcp.tool import Effect, Tool
from pillarbox.mcp.tool_schemas import bound_tools, shown_answer
from pillarbox.mcp.tools import TOOLS

BOUND = bound_tools(RouteTable([*ROUTES, *CAPTURE_ROUTES]))
MOST_BYTES = 100_000
HIDDEN = {"html", "raw", "extracted_text", "headers", "signing_secret", "download_url", "token"}
"""Fields that no tool shows: raw bodies of strangers, and secrets."""


def test_every_tool_has_a_route_and_a_name_of_its_own() -> None:
    assert [tool.name for tool in TOOLS] == list(BOUND)


@pytest.mark.parametrize("name", BOUND)
def test_schemas_are_valid_and_of_objects(name: str) -> None:
    bound = BOUND[name]
    for schema in (bound.input_schema, bound.output_schema):
        assert schema["type"] == "object"
        assert "#/components" not in json.dumps(schema)
        jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})
        jsonschema_rs.validator_for(schema)
    assert set(bound.required) <= bound.input_schema["properties"].keys()


@pytest.mark.parametrize("name", BOUND)
def test_no_tool_shows_raw_bodies_or_secrets(name: str) -> None:
    assert not names_in(BOUND[name].output_schema) & HIDDEN


def names_in(value: Any) -> set[str]:
    if isinstance(value, list):
        return set().union(*(names_in(one) for one in value))
    if not isinstance(value, dict):
        return set()
    own = set(value["properties"]) if isinstance(value.get("properties"), dict) else set()
    return own.union(*(names_in(one) for one in value.values()))


def test_marks_follow_from_the_method() -> None:
    for bound in BOUND.values():
        assert (bound.tool.effect is Effect.READS) == (bound.route.method == "GET"), bound.tool.name
        deletes = bound.route.method == "DELETE" and bound.tool.name != "unlabel_thread"
        assert not deletes or bound.tool.effect is Effect.DESTROYS, bound.tool.name


def test_the_list_of_tools_fits_a_context() -> None:
    assert len(json.dumps([bound.listed() for bound in BOUND.values()])) < MOST_BYTES


def test_an_answer_is_cut_to_what_the_tool_shows() -> None:
    tool = Tool(
        name="a", title="A", description="", method="GET", path="/a", shown=("id", "text"), cut={"text": 5}
    )
    listed = {"object": "list", "data": [{"id": 1, "text": "123456", "html": "<b>"}]}
    assert shown_answer(tool, listed) == {"object": "list", "data": [{"id": 1, "text": "1234…"}]}
    assert shown_answer(tool, {"id": 1, "text": "12345", "html": ""}) == {"id": 1, "text": "12345"}


def test_the_program_loads_no_types_of_mcp() -> None:
    """They cost each process 24 MB, which it pays when it is asked over MCP (docs/decisions/0197)."""
    script = "import sys, pillarbox.application; print({'mcp', 'mcp_types', 'pydantic'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
