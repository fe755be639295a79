"""The sources of the program, read and parsed once for all lints of a session."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the module; whoever changes a node changes it for all."""
    return ast.parse(text_of(path))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of the module, in the order of `ast.walk`."""
    return tuple(ast.walk(tree_of(path)))
