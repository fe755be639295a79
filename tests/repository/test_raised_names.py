"""Exceptions that docstrings name are there: a caller catches what the docstring says.

Where this fails: write the name that the class has now.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from pathlib import Path

from kit.sources import nodes_of, tree_of

SOURCE = Path(__file__).resolve().parents[2] / "src" / "pillarbox"

RAISED = re.compile(r"\b[Rr]aises? (?:an? )?([A-Z]\w+(?:(?:, and |, or |, | and | or )(?:an? )?[A-Z]\w+)*)")
"""One or several names in camel case after the verb."""


def raised_names(tree: ast.AST) -> Iterator[str]:
    """Yield the names of exceptions that the docstrings of functions and classes say to be raised."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for found in RAISED.finditer(" ".join((ast.get_docstring(node) or "").split())):
                yield from re.findall(r"[A-Z]\w+", found[1])


def known_names() -> set[str]:
    """Return the names of all classes of the program, and of those that it imports or takes from modules."""
    known = set(dir(builtins))
    for path in SOURCE.rglob("*.py"):
        for node in nodes_of(path):
            match node:
                case ast.ClassDef(name=name) | ast.Attribute(attr=name):
                    known.add(name)
                case ast.Import(names=names) | ast.ImportFrom(names=names):
                    known.update(alias.asname or alias.name for alias in names)
    return known


def test_exceptions_that_docstrings_name_exist() -> None:
    known = known_names()
    missing = [
        f"{path.relative_to(SOURCE)}: {name}"
        for path in sorted(SOURCE.rglob("*.py"))
        for name in raised_names(tree_of(path))
        if name not in known
    ]
    assert missing == [], "write the name that the class has now"


def test_names_of_exceptions_are_found() -> None:
    source = 'def f():\n    """Do it. Raises Busy, and NotFound where it\n    is gone; or raise a Gone."""'
    assert list(raised_names(ast.parse(source))) == ["Busy", "NotFound", "Gone"]
    assert list(raised_names(ast.parse('def f():\n    """Raises what `work` raises."""'))) == []
