"""Fields are named where a value is made: a column in the middle shifts no others.

Wire shapes and rows that statements fill take their fields by name alone. Other records take at most
`MOST_POSITIONAL` without their names. `Kind(*record)` and `Kind._make(record)` are a reader's own business.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from kit.sources import tree_of

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "pillarbox"

MOST_POSITIONAL = 4

TABLES = {
    "tests/kit/dns_cases.py": "cases, one a line, whose columns its head names",
}
"""Modules whose records stand in the columns of a table, with the reason."""


@dataclass(frozen=True, slots=True)
class RecordClass:
    """A class whose constructor takes its fields: a NamedTuple, a dataclass or a Struct."""

    kind: str
    path: Path
    node: ast.ClassDef

    @property
    def is_keyword_only(self) -> bool:
        options = [*self.node.keywords]
        for decorator in self.node.decorator_list:
            options += decorator.keywords if isinstance(decorator, ast.Call) else []
        return any(
            option.arg == "kw_only" and isinstance(option.value, ast.Constant) and option.value.value is True
            for option in options
        )

    @property
    def where(self) -> str:
        return f"{self.path.relative_to(ROOT)}: {self.node.name}"


@cache
def modules() -> list[Path]:
    folders = ("src", "tests", "bench")
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


@cache
def classes() -> dict[str, list[tuple[Path, ast.ClassDef]]]:
    found: dict[str, list[tuple[Path, ast.ClassDef]]] = {}
    for path in modules():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append((path, node))
    return found


def last_name(node: ast.expr) -> str:
    """Return the last word of a name, without what stands in brackets behind it."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=value) | ast.Call(func=value):
            return last_name(value)
    return ""


def kind_of(node: ast.ClassDef, seen: frozenset[str] = frozenset()) -> str | None:
    if any(last_name(decorator) == "dataclass" for decorator in node.decorator_list):
        return "dataclass"
    for base in map(last_name, node.bases):
        if base in ("NamedTuple", "Struct"):
            return base
        if base not in seen:
            for _, below in classes().get(base, []):
                if (kind := kind_of(below, seen | {base})) is not None:
                    return kind
    return None


@cache
def records() -> dict[str, list[RecordClass]]:
    return {
        name: [RecordClass(kind, path, node) for path, node in found if (kind := kind_of(node)) is not None]
        for name, found in classes().items()
    }


def long_calls(tree: ast.AST, names: set[str]) -> Iterator[ast.Call]:
    """Yield the calls of these classes that have too many arguments without a name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and last_name(node.func) in names and len(node.args) > MOST_POSITIONAL:
            yield node


def rows_of_statements(tree: ast.AST) -> Iterator[str]:
    """Yield the names of the classes that `TeamDb.one` and `TeamDb.all` fill."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="one" | "all"), args=[first, _, *_]):
                yield last_name(first)


def is_wire_shape(record: RecordClass) -> bool:
    """Whether it is a struct of a `wire.py`, or the data of an event."""
    return record.kind == "Struct" and (
        record.path.name == "wire.py" or record.node.name.endswith(("Data", "Event", "EventRecord"))
    )


def test_records_of_many_fields_name_them() -> None:
    names = {name for name, found in records().items() if found}
    calls = [
        f"{path.relative_to(ROOT)}:{call.lineno} {last_name(call.func)}"
        for path in modules()
        if str(path.relative_to(ROOT)) not in TABLES
        for call in long_calls(tree_of(path), names)
    ]
    assert calls == [], f"name the arguments: at most {MOST_POSITIONAL} go without"


def test_wire_shapes_are_keyword_only() -> None:
    shapes = [
        record
        for found in records().values()
        for record in found
        if record.path.is_relative_to(SOURCE) and is_wire_shape(record)
    ]
    assert len(shapes) > 200
    assert [shape.where for shape in shapes if not shape.is_keyword_only] == [], "add kw_only=True"


def test_rows_that_statements_fill_are_keyword_only() -> None:
    """A NamedTuple cannot be; there the number of arguments is what is checked."""
    names = {name for path in SOURCE.rglob("*.py") for name in rows_of_statements(tree_of(path))}
    rows = [
        record
        for name in sorted(names)
        for record in records().get(name, [])
        if record.path.is_relative_to(SOURCE) and record.kind != "NamedTuple"
    ]
    assert len(rows) > 40
    assert [row.where for row in rows if not row.is_keyword_only] == [], "add kw_only=True"


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("Topic(1, 2, 3, 4, 5)", 1),
        ("queries.Topic(1, 2, 3, 4, 5)", 1),
        ("Topic[int](1, 2, 3, 4, 5)", 1),
        ("Topic(1, 2, 3, *rest, 5)", 1),
        ("Topic(*record)", 0),
        ("Topic(1, 2, 3, 4, name=5)", 0),
        ("other(1, 2, 3, 4, 5)", 0),
    ],
)
def test_the_rule_of_names_finds_a_violation(source: str, count: int) -> None:
    assert len(list(long_calls(ast.parse(source), {"Topic"}))) == count


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("class A(Struct): id: int", False),
        ("class A(Struct, kw_only=True): id: int", True),
        ("class A(Struct, kw_only=False): id: int", False),
        ("@dataclass(frozen=True)\nclass A: id: int", False),
        ("@dataclass(frozen=True, kw_only=True)\nclass A: id: int", True),
    ],
)
def test_the_rule_of_shapes_finds_a_violation(source: str, expected: bool) -> None:
    (node,) = ast.parse(source).body
    assert isinstance(node, ast.ClassDef)
    assert RecordClass(kind_of(node) or "", SOURCE / "wire.py", node).is_keyword_only is expected
