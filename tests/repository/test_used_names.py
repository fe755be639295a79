"""Nothing in the program exists for tests alone: what is public has a user in the program, or is a seam."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from kit.sources import text_of, tree_of

SOURCE = Path(__file__).parents[2] / "src" / "pillarbox"

SEAMS = {
    "kernel.settings.page.settings_page": "script/docs writes the page of settings",
    "kernel.work.retention_page.retention_page": "script/docs writes the page of retention",
}
"""Names that somebody outside of the program uses, and who."""

CALLED_BY_LIBRARIES = {
    *("data_received", "eof_received", "datagram_received", "error_received"),
    *("on_body", "on_header", "on_headers_complete", "on_message_begin", "on_message_complete"),
    *("emit", "get_reset_query", "capture_signals"),
}
"""Methods of protocols of asyncio and httptools, of handlers of logging, of asyncpg and of uvicorn."""


def used_names(trees: Iterable[ast.Module]) -> Counter[str]:
    """How often each name is used, as a name, an attribute, a keyword or a text."""
    used: Counter[str] = Counter()
    for tree in trees:
        for node in ast.walk(tree):
            match node:
                case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name):
                    used[name] += 1
                case ast.keyword(arg=str(name)):
                    used[name] += 1
                case ast.Constant(value=str(name)):
                    used[name] += 1
                case ast.ImportFrom(names=aliases):
                    used.update(alias.name for alias in aliases if alias.asname)
    return used


def public_names(tree: ast.Module) -> Iterator[str]:
    """Functions, classes with their methods, and constants of a module. Handlers are collected by `route`."""
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if not node.decorator_list:
                    yield name
            case ast.ClassDef(name=name):
                yield name
                yield from (
                    f"{name}.{method.name}"
                    for method in node.body
                    if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef))
                )
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name


def unused(modules: dict[str, ast.Module], templates: str = "") -> set[str]:
    used = used_names(modules.values())
    used.update(re.findall(r"\w+", templates))
    return {
        f"{module}.{name}"
        for module, tree in modules.items()
        for name in public_names(tree)
        if not (last := name.rpartition(".")[2]).startswith("_")
        and not used[last]
        and last not in CALLED_BY_LIBRARIES
    }


def test_every_public_name_has_a_user_in_the_program() -> None:
    modules = {
        ".".join(path.relative_to(SOURCE).with_suffix("").parts): tree_of(path)
        for path in SOURCE.rglob("*.py")
    }
    templates = "".join(text_of(path) for path in SOURCE.rglob("*.html"))
    assert unused(modules, templates) == SEAMS.keys(), (
        "remove it, or move it to the tests, or say here who uses it"
    )


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def find(): ...", {"m.find"}),
        ("def find(): ...\ndef _go(): find()", set()),
        ("class Row:\n    def is_live(self): ...\n\nrow = Row()\nprint(row)", {"m.Row.is_live"}),
        ("LIMIT = 3", {"m.LIMIT"}),
        ("@route()\ndef index(): ...", set()),
        ("def _private(): ...", set()),
    ],
)
def test_names_without_a_user_are_found(text: str, names: set[str]) -> None:
    assert unused({"m": ast.parse(text)}) == names


def test_templates_are_users() -> None:
    modules = {"m": ast.parse("class Form:\n    def is_of(self): ...\n\nprint(Form)")}
    assert unused(modules) == {"m.Form.is_of"}
    assert unused(modules, "{% if saved.is_of(form) %}") == set()
