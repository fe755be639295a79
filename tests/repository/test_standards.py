"""docs/standards.md is complete: each rule that is named has a row, each row has its tests or its reason."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from kit.sources import text_of, tree_of

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "standards.md"
FOLDERS = ("src", "tests", "bench", "docs", "script", "deploy")
OF_THE_ROOT = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
SUFFIXES = {".py", ".md", ".sql", ".toml", ".sh", ".html", ".js", ".css", ".yaml"}
REASONS = ("not built: ", "no test: ")

ROW = re.compile(r"\| ([A-Z]+-\d\d) \| (.+) \| (.+) \| (.+) \|")
TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")


class Rule(NamedTuple):
    id: str
    text: str
    source: str
    proof: str


@cache
def rules() -> tuple[Rule, ...]:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    return tuple(Rule(*row.groups()) for line in lines if (row := ROW.fullmatch(line)))


@cache
def kinds() -> str:
    """The letters that ids begin with, the longest first."""
    letters = {rule.id.partition("-")[0] for rule in rules()}
    return "|".join(sorted(letters, key=lambda word: (-len(word), word)))


def ids_in(text: str) -> set[str]:
    """The ids of rules that a text names: `SMTP-05`, and all of `SMTP-05, 10 and 21`."""
    listed = re.compile(rf"\b({kinds()})-(\d\d)\b((?:(?:, | and |, and )\d\d\b)*)")
    return {
        f"{found[1]}-{number}"
        for found in listed.finditer(text)
        for number in (found[2], *re.findall(r"\d\d", found[3]))
    }


@cache
def named_by_tests_of(path: Path) -> dict[str, set[str]]:
    """The tests of a file, with the ids that each one, its name or its module names."""
    tree = tree_of(path)
    of_all = ids_in(ast.get_docstring(tree) or "")
    found = {}
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            name = re.sub(r"_(\d\d)(?=_)", r"-\1", node.name.removeprefix("test_")).replace("_", " ").upper()
            found[node.name] = of_all | ids_in(ast.get_docstring(node) or "") | ids_in(name)
    return found


def fault_of(rule: Rule) -> list[str]:
    """What is wrong with the last column of a row."""
    if rule.proof.startswith(REASONS):
        return []
    tests = TEST.findall(rule.proof)
    if ", ".join(f"`{path}::{name}`" for path, name in tests) != rule.proof or not tests:
        return [f"{rule.id}: neither a list of tests nor a reason: {rule.proof}"]
    found = []
    for path, name in tests:
        file = ROOT / "tests" / path
        if not file.exists() or name not in named_by_tests_of(file):
            found.append(f"{rule.id}: there is no {path}::{name}")
        elif rule.id not in named_by_tests_of(file)[name]:
            found.append(f"{rule.id}: neither {path}::{name} nor its module names it")
    return found


def test_every_id_has_one_row_of_four_columns() -> None:
    ids = [rule.id for rule in rules()]
    assert len(ids) > 200
    assert sorted(ids) == sorted(set(ids))
    page = PAGE.read_text(encoding="utf-8")
    assert len(re.findall(r"(?m)^\| [A-Z]+-\d", page)) == len(ids)


def test_every_id_that_is_named_has_a_row() -> None:
    known = {rule.id for rule in rules()}
    inside = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    missing = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in (*inside, *(ROOT / name for name in OF_THE_ROOT))
        if path != Path(__file__)
        for name in sorted(ids_in(text_of(path)) - known)
    ]
    assert missing == []


def test_every_row_has_its_tests_or_its_reason() -> None:
    assert [fault for rule in rules() for fault in fault_of(rule)] == []


HERE = "`repository/test_standards.py::test_every_row_has_its_tests_or_its_reason`"


@pytest.mark.parametrize(
    "proof",
    [
        "some day",
        "",
        "not built",
        "`repository/test_standards.py::test_that_is_not_there`",
        "`repository/test_none.py::test_any`",
        HERE,
        f"{HERE} perhaps",
    ],
)
def test_a_row_without_proof_is_found(proof: str) -> None:
    assert fault_of(Rule("TRAP-01", "A rule.", "RFC 5322", proof)) != []


def test_lists_and_names_of_tests_name_ids() -> None:
    named = ids_in("limits (SMTP-05, 10 and 21; OUT-06, RFC 5321)")
    assert named == {"SMTP-05", "SMTP-10", "SMTP-21", "OUT-06"}
    found = named_by_tests_of(ROOT / "tests/mail/test_mx.py")["test_out_02_a_null_mx_among_others_is_skipped"]
    assert "OUT-02" in found
