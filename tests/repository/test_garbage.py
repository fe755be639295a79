"""The collector of garbage leaves alone what a test session has loaded."""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1]


def thaws(text: str) -> bool:
    """Whether a module lets the collector look through what was set aside."""
    return any(
        isinstance(node, ast.Call) and ast.unparse(node.func).endswith("unfreeze")
        for node in ast.walk(ast.parse(text))
    )


def test_no_test_thaws_what_the_session_has_loaded() -> None:
    """A gigabyte is looked through at each full collection from then on, in all tests that follow."""
    found = [path.name for path in TESTS.rglob("*.py") if thaws(path.read_text())]
    assert found == [], "leave out gc.unfreeze()"


def test_one_that_does_is_found() -> None:
    assert thaws("import gc\ndef f():\n    gc.unfreeze()\n")
    assert not thaws("import gc\ngc.freeze()\n")
