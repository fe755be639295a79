"""The SQL of the program: every text of a module that is a statement, wherever it stands."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kit.sources import tree_of
from pillarbox.automations.execution import work_queries
from pillarbox.delivery import queries as delivery_queries
from pillarbox.kernel.work import claim_queries
from pillarbox.kernel.work.lease_table import LeaseTable, forget_process
from pillarbox.webhooks.dispatch import queries as webhook_queries

SOURCE = Path(__file__).parents[2] / "src" / "pillarbox"

STATEMENT = re.compile(
    r"[\s(]*(SELECT|INSERT|UPDATE|DELETE|WITH|MERGE|VALUES|TRUNCATE|LOCK|COPY|CREATE|DROP|ALTER|SET|NOTIFY"
    r"|ANALYZE|VACUUM|SAVEPOINT|ROLLBACK)\s"
)
"""How a statement begins. Its key words are in capitals, so no sentence is taken for one."""


@dataclass(frozen=True, slots=True)
class SqlText:
    """A statement, its module (`delivery/queries.py`), and the function, class or constant that holds it."""

    module: str
    name: str
    sql: str

    @property
    def where(self) -> str:
        """Return `slice.NAME`."""
        return f"{self.module.split('/')[0]}.{self.name}"


def statements_of(path: Path) -> Iterator[SqlText]:
    tree = tree_of(path)
    skipped = _docstrings(tree)
    for name, top in _named_nodes(tree):
        for node in ast.walk(top):
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
                continue
            if id(node) not in skipped and STATEMENT.match(node.value):
                yield SqlText(str(path.relative_to(SOURCE)), name, node.value)


DESCRIBED = SOURCE / "kernel" / "work" / "lease_table.py"
"""Makes statements of descriptions of tables."""

LEASE_TABLES: dict[str, LeaseTable] = {
    "automations/execution/work_queries.py": work_queries.STEPS,
    "delivery/queries.py": delivery_queries.ITEMS,
    "kernel/work/claim_queries.py": claim_queries.JOBS,
    "webhooks/dispatch/queries.py": webhook_queries.DELIVERIES,
}
"""The descriptions, by the module that they stand in."""


def described_statements() -> Iterator[SqlText]:
    for module, table in LEASE_TABLES.items():
        counts = ("count", "sample", "size") if table.state else ()
        overviews = {name: getattr(table, name) for name in ("is_busy", *counts)}
        for name, sql in (*table.statements.items(), *overviews.items()):
            yield SqlText(module, f"{table.name}.{name}", sql)
    yield SqlText("kernel/work/lease_table.py", "forget_process", forget_process())


def written_statements() -> list[SqlText]:
    """Return the statements that stand as texts in the program."""
    paths = sorted(set(SOURCE.rglob("*.py")) - {DESCRIBED})
    return [statement for path in paths for statement in statements_of(path)]


def all_statements() -> list[SqlText]:
    """Return the statements of the whole program."""
    return [*written_statements(), *described_statements()]


def statement_constants(tree: ast.Module) -> set[str]:
    """Return the names of the constants of a module that are statements."""
    names = set()
    for name, node in _named_nodes(tree):
        value = getattr(node, "value", None)
        if isinstance(value, ast.Constant) and isinstance(value.value, str) and STATEMENT.match(value.value):
            names.add(name)
    return names


def constants_used(tree: ast.Module, constants: Mapping[str, set[str]]) -> Iterator[str]:
    """Yield the statements of other modules that a module names, as `module.NAME`. `constants` are those of
    each module, by its name."""
    modules: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (module := f"{node.module}.{alias.name}") in constants:
                    modules[alias.asname or alias.name] = module
                elif alias.name in constants.get(node.module, ()):
                    yield f"{node.module}.{alias.name}"
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if attr in constants.get(
                modules.get(name, ""), ()
            ):
                yield f"{modules[name]}.{attr}"


def pieced_statements(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield the expressions that make a statement of pieces: a text with holes, a sum, a replacement,
    a join."""
    constants = _statement_constants(tree)
    for node in ast.walk(tree):
        match node:
            case ast.JoinedStr(values=[first, _, *_]):
                pieces: ast.expr = first
            case ast.BinOp(left=first, op=ast.Add() | ast.Mod()):
                pieces = first
            case ast.Call(func=ast.Attribute(value=first, attr=attr)) if attr in _TEXT_CHANGES:
                pieces = first
            case _:
                continue
        if _is_statement(pieces, constants):
            yield node


_TEXT_CHANGES = {"replace", "format", "format_map", "join", "removesuffix", "removeprefix"}


def _is_statement(node: ast.expr, constants: set[str]) -> bool:
    match node:
        case ast.Constant(value=str(text)):
            return STATEMENT.match(text) is not None
        case ast.Name(id=name):
            return name in constants
    return False


def _statement_constants(tree: ast.Module) -> set[str]:
    """Return the constants of the module that hold statements, and those imported from a `queries` module."""
    names = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("queries")
        for alias in node.names
        if alias.name.isupper()
    }
    return names | statement_constants(tree)


def _named_nodes(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Yield the top level of a module, piece by piece, each with the name it is known by."""
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name, node
            case _:
                yield "", node


def _docstrings(tree: ast.AST) -> set[int]:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, kinds) and node.body and isinstance(node.body[0], ast.Expr)
    }
