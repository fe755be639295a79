"""Whatever source, tests and documents refer to is there: sections, decisions, rules of style, pages.

`REFERENCES` is the table: how a reference is written, and what says whether it leads anywhere. To have
another kind followed, add a row. A blank in a pattern is any gap between words, also a line end with the
comment sign of the next line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from kit.sources import text_of
from pillarbox.kernel.process.faults import POINTS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CONTRACT = DOCS / "contract"
RECORDS = DOCS / "decisions"
MEASUREMENTS = ROOT / "bench" / "MEASUREMENTS.md"
MIGRATIONS = ROOT / "src" / "pillarbox" / "schema" / "migrations"
"""Files that never change again, so they may name a record that went."""

SOURCES = (ROOT, ROOT / "src" / "pillarbox", ROOT / "src" / "pillarbox" / "kernel", ROOT / "tests")
FOLDERS = ("src", "tests", "bench", "docs", "script", "deploy")
OF_THE_ROOT = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "pyproject.toml")
SUFFIXES = {".py", ".md", ".sql", ".toml", ".sh", ".html", ".js", ".css", ".yaml"}

NUMBER = r"\d+(?:\.\d+)*"
NUMBERS = rf"(?P<numbers>{NUMBER}(?:(?:,|,? (?:and|or|to)) {NUMBER}(?![\w%]))*)"
NAMES = "|".join(sorted(page.stem for page in CONTRACT.glob("[a-z]*.md") if page.stem != "index"))

HEADING = re.compile(rf"#+ ({NUMBER})\.? ")
INSIDE = re.compile(r"[-*|# ]*(\d+(?:\.\d+)+)[.: *|]")
ITEM = re.compile(r"(\d+)\. ")
ROW = re.compile(r"\| (\d+) \|")
TITLE = re.compile(r"#+ (.*)")
OWNER = re.compile(rf"(?i)(?:RFC ?\d+|(?:{NAMES})(?:\.md)?`?|standards|architecture|{NUMBER}),?\s*(?:#\s*)?$")


# What there is ------------------------------------------------------------------------------------


@cache
def sections(page: Path) -> frozenset[str]:
    """The numbers of a page: of headings, of paragraphs that begin with one, and of the items of a numbered
    list in a numbered section (item 6 of section 2 is 2.6)."""
    found: set[str] = set()
    section = ""
    for line in page.read_text().splitlines():
        if heading := HEADING.match(line):
            section = heading[1]
            found.add(section)
        elif inside := INSIDE.match(line):
            found.add(inside[1])
        elif (item := ITEM.match(line)) and section:
            found.add(f"{section}.{item[1]}")
    return frozenset(found)


@cache
def style_rules() -> frozenset[str]:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    rules = page.partition("\n## Style rules\n")[2].partition("\n## ")[0]
    return frozenset(item[1] for line in rules.splitlines() if (item := ITEM.match(line)))


@cache
def contract_decisions() -> frozenset[str]:
    lines = (CONTRACT / "00-decisions.md").read_text().splitlines()
    return frozenset(row[1] for line in lines if (row := ROW.match(line)))


@cache
def records() -> frozenset[str]:
    return frozenset(page.name[:4] for page in RECORDS.glob("[0-9]*.md"))


@cache
def records_gone() -> Mapping[str, str]:
    """The numbers of records that went, and where each went."""
    lines = (RECORDS / "README.md").read_text().partition("\n## Numbers that went\n")[2].splitlines()
    return {line[2:6]: line[8:] for line in lines if line.startswith("- ")}


@cache
def anchors(page: Path) -> frozenset[str]:
    """What a link to a heading of the page may end with."""
    titles = (title[1] for line in page.read_text().splitlines() if (title := TITLE.match(line)))
    return frozenset(re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles)


@cache
def pages_named(file: Path) -> tuple[Path, ...]:
    """The pages of the contract that a file is about; a page of the contract is about itself."""
    if file.parent == CONTRACT:
        return (file,)
    names = re.findall(rf"(?i)\b({NAMES})\.md|\b(conventions)\b", text_of(file))
    return tuple(CONTRACT / f"{name}.md" for name in sorted({(a or b).lower() for a, b in names}))


# What is missing ----------------------------------------------------------------------------------

Missing = Callable[[re.Match[str], Path], list[str]]


def numbers(found: re.Match[str]) -> list[str]:
    return re.findall(NUMBER, found["numbers"])


def lacking(found: re.Match[str], page: Path) -> list[str]:
    return [f"{page.name} has no {number}" for number in numbers(found) if number not in sections(page)]


def in_contract(found: re.Match[str], _: Path) -> list[str]:
    return lacking(found, CONTRACT / f"{found['page'].lower()}.md")


def in_architecture(found: re.Match[str], _: Path) -> list[str]:
    return lacking(found, DOCS / "architecture.md")


def in_standards(found: re.Match[str], _: Path) -> list[str]:
    return lacking(found, DOCS / "standards.md")


def in_this_file(found: re.Match[str], file: Path) -> list[str]:
    """A section without a page is one of a page that the file names, or of the RFC that it is about."""
    pages = pages_named(file)
    if OWNER.search(found.string[max(0, found.start() - 40) : found.start()]) or not pages:
        return []
    missing = [number for number in numbers(found) if not any(number in sections(page) for page in pages)]
    if file.parent != CONTRACT and "RFC" in text_of(file):
        return []
    return [f"no section {number} in {', '.join(page.name for page in pages)}" for number in missing]


def a_decision(found: re.Match[str], _: Path) -> list[str]:
    return [
        f"no contract decision {number}" for number in numbers(found) if number not in contract_decisions()
    ]


def a_record(found: re.Match[str], file: Path) -> list[str]:
    if found["number"] in records():
        return []
    gone = records_gone().get(found["number"])
    if gone and file.parent == MIGRATIONS:
        return []
    return [f"no page docs/decisions/{found['number']}-….md" + (f": {gone}" if gone else "")]


@cache
def named_in_source() -> tuple[frozenset[str], frozenset[str]]:
    """What may stand before a dot in a name of ours (modules, classes); all words outside of backquotes."""
    ours = ROOT / "src" / "pillarbox"
    folders = (ours, ROOT / "tests", ROOT / "bench")
    paths = [path for folder in folders for path in folder.rglob("*") if path.suffix in {".py", ".sql"}]
    texts = [text_of(path) for path in paths if path != Path(__file__)]
    words = {word for text in texts for word in re.findall(r"\w+", re.sub(r"`[^`]*`", "", text))}
    modules = [path for path in paths if path.suffix == ".py" and ours in path.parents]
    owners = {path.stem for path in modules} | {path.parent.name for path in modules}
    classes = {name for text in texts for name in re.findall(r"^ *class (\w+)", text, re.M)}
    return frozenset(owners | classes), frozenset(words | owners)


def a_name(found: re.Match[str], _: Path) -> list[str]:
    """`module.NAME` and `Class.method` exist; a name whose beginning is not ours is somebody else's."""
    owners, words = named_in_source()
    parts = found["name"].split(".")
    if parts[-1] in {"py", "sql", "md", "json", "html", "toml", "sh", "yaml", "txt", "example"}:
        return []
    missing = [part for part in parts[1:] if part not in words]
    return [f"no {part} in the source" for part in missing] if parts[0] in owners else []


def a_measurement(found: re.Match[str], _: Path) -> list[str]:
    return lacking(found, MEASUREMENTS)


def a_module(found: re.Match[str], file: Path) -> list[str]:
    """A page names a module by its path from the root, from `src/pillarbox`, from its kernel, or from tests.
    What a recipe of CONTRIBUTING.md makes is called an example, or NNNN."""
    path = found["path"]
    if file.suffix != ".md" or "example" in path or "NNNN" in path:
        return []
    if any((folder / path).exists() for folder in (*SOURCES, file.parent)):
        return []
    return [f"there is no {path}"]


def a_style_rule(found: re.Match[str], _: Path) -> list[str]:
    return [f"CONTRIBUTING.md has no style rule {n}" for n in numbers(found) if n not in style_rules()]


def a_page(found: re.Match[str], _: Path) -> list[str]:
    page = ROOT / found["path"]
    return [] if page.exists() else [f"there is no {found['path']}"]


HOSTS = frozenset(("host", "shop.example"))
"""Stand in examples of safe texts, whose links have the form of ours."""


def a_link(found: re.Match[str], file: Path) -> list[str]:
    """The target of a link in a page: a file, and a heading in it."""
    if file.suffix != ".md" or found["path"] in HOSTS:
        return []
    page = (file.parent / found["path"]).resolve() if found["path"] else file
    if not page.exists():
        return [f"the link to {found['path']} leads nowhere"]
    anchor = found["anchor"]
    return [] if not anchor or anchor in anchors(page) else [f"{page.name} has no heading #{anchor}"]


def retired(advice: str) -> Missing:
    """A way of writing that says too little."""
    return lambda found, _: [] if found.groupdict().get("told") else [advice]


# The table ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reference:
    """One way to refer to something, with an example that leads nowhere."""

    looks: re.Pattern[str]
    missing: Missing
    broken: str


def reference(looks: str, missing: Missing, broken: str) -> Reference:
    return Reference(re.compile(looks.replace(" ", r"(?:\s+(?:(?:#|--)\s+)?)")), missing, broken)


REFERENCES = (
    reference(rf"(?i:(?P<page>{NAMES})\.md`?,?) (?:sections? )?{NUMBERS}", in_contract, "emails.md 1.99"),
    reference(rf"(?i:\b(?P<page>{NAMES})),? sections? {NUMBERS}", in_contract, "conventions section 99"),
    reference(rf"(?i:\b(?P<page>conventions)) {NUMBERS}", in_contract, "conventions 14 and 99"),
    reference(rf"[Cc]ontract decisions? {NUMBERS}", a_decision, "contract decisions 1,\n    # 2 and 99"),
    reference(r"docs/decisions/(?P<number>\d{4})", a_record, "docs/decisions/9999"),
    reference(rf"MEASUREMENTS\.md, {NUMBERS}", a_measurement, "bench/MEASUREMENTS.md, 99"),
    reference(r"`(?P<path>[a-z_]+(?:/[\w]+)+\.(?:py|sql))`", a_module, "says `emails/nowhere.py`"),
    reference(r"`(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)(?:\(\))?`", a_name, "see `Accept.no_such_method`"),
    reference(rf"[Ss]tyle rules? {NUMBERS}", a_style_rule, "style rule 99"),
    reference(rf"[Aa]rchitecture (?:sections? )?{NUMBERS}", in_architecture, "architecture 99.9"),
    reference(rf"[Ss]tandards,? sections? {NUMBERS}", in_standards, "standards, section 99"),
    reference(rf"\b[Ss]ections? {NUMBERS}", in_this_file, "emails.md says so (section 99)"),
    reference(r"(?<![\w/])(?P<path>docs/[\w/.-]+\.md)", a_page, "docs/guide/none.md"),
    reference(r"\]\((?P<path>[\w./-]*)(?:#(?P<anchor>[\w-]+))?\)", a_link, "[there](none.md)"),
    reference(r"\b[Dd]esign,? (?:decision |section )?\d", retired("write `architecture 2.6`"), "design 2.6"),
    reference(r"00-decisions(?:\.md)? \d", retired("write `contract decision 26`"), "00-decisions 26"),
    reference(
        r"(?P<told>[Cc]ontract )?(?<![/\w-])[Dd]ecisions? \d",
        retired("write `contract decision 26` or `docs/decisions/0026`"),
        "decision 26",
    ),
)


@cache
def files() -> tuple[Path, ...]:
    inside = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    mine = Path(__file__)
    every = (*inside, *(ROOT / name for name in OF_THE_ROOT))
    return tuple(sorted(path for path in every if path != mine))


def faults(text: str, file: Path, of: Reference) -> Iterator[str]:
    for found in of.looks.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        for what in of.missing(found, file):
            yield f"{file.relative_to(ROOT)}:{line}: {' '.join(found[0].split())}: {what}"


@pytest.mark.parametrize("of", REFERENCES, ids=lambda of: " ".join(of.broken.split()))
def test_every_reference_leads_somewhere(of: Reference) -> None:
    assert [fault for file in files() for fault in faults(text_of(file), file, of)] == []


@pytest.mark.parametrize("of", REFERENCES, ids=lambda of: " ".join(of.broken.split()))
def test_a_broken_reference_is_found(of: Reference, monkeypatch: pytest.MonkeyPatch) -> None:
    page = CONTRACT / "emails.md"
    if of.missing in {in_architecture, in_standards}:
        monkeypatch.setattr(f"{__name__}.DOCS", CONTRACT)
        monkeypatch.setattr(f"{__name__}.sections", lambda _: frozenset())
    assert list(faults(of.broken, page, of)) != []


def test_numbers_of_a_page_are_headings_paragraphs_and_items() -> None:
    assert {"1", "1.5", "4.1", "11"} <= sections(CONTRACT / "emails.md")
    assert style_rules() == {str(number) for number in range(1, 22)}


def test_numbers_of_records_are_used_once_and_lead_somewhere() -> None:
    """A record that goes gets a line in docs/decisions/README.md."""
    gone = records_gone()
    assert gone.keys() & records() == set()
    folded = {number: where[12:16] for number, where in gone.items() if where.startswith("folded into ")}
    assert {number: into for number, into in folded.items() if into not in records()} == {}
    assert len(records()) == len(list(RECORDS.glob("[0-9]*.md"))), "two records have one number"


def test_the_list_of_records_has_each() -> None:
    """In the order of their numbers."""
    listed = re.findall(r"^- \[(\d+)\]\((.+?)\): ", (RECORDS / "README.md").read_text(), re.M)
    assert listed == [(path.name[:4], path.name) for path in sorted(RECORDS.glob("[0-9]*.md"))]


def test_migrations_alone_may_name_a_record_that_went() -> None:
    (of,) = [one for one in REFERENCES if one.missing is a_record]
    text = "docs/decisions/0094"
    assert list(faults(text, MIGRATIONS / "0030_thread_lists.sql", of)) == []
    assert list(faults(text, CONTRACT / "emails.md", of)) != []


def test_the_record_of_faults_has_each_point() -> None:
    rows = re.findall(r"^\| `([a-z_.0-9]+)` \|", (RECORDS / "0012-fault-points.md").read_text(), re.M)
    assert sorted(rows) == sorted(POINTS)
