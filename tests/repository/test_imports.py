"""Modules do not import each other in a circle, and no package is a long list of files."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from kit.sources import text_of, tree_of

SOURCE = Path(__file__).parents[2] / "src"
MOST_FILES = 25


def module_name(path: Path, source: Path = SOURCE) -> str:
    return ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")


def imported_names(path: Path, tree: ast.Module, source: Path = SOURCE) -> Iterator[str]:
    """Every name that a module imports, absolute, wherever the import stands: inside functions and under
    TYPE_CHECKING too, since a reader needs both modules at once either way."""
    package = path.relative_to(source).parent.parts
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            origin = ".".join((*above, node.module) if node.module else above)
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def import_graph(source: Path = SOURCE) -> dict[str, set[str]]:
    """For each module the modules that it imports."""
    paths = {module_name(path, source): path for path in source.rglob("*.py")}
    graph: dict[str, set[str]] = {}
    for module, path in paths.items():
        names = set(imported_names(path, tree_of(path), source))
        found = {name if name in paths else name.rpartition(".")[0] for name in names}
        graph[module] = found & paths.keys() - {module}
    return graph


def circle_of(graph: Mapping[str, set[str]]) -> list[str]:
    """The modules of one circle, each imported by the next; empty where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = import_graph()
    assert len(graph) > 300
    assert sum(map(len, graph.values())) > len(graph)
    assert circle_of(graph) == []


@pytest.mark.parametrize(
    "statement",
    [
        "import package.second",
        "import package.second as other",
        "from package import second",
        "from package.second import VALUE",
        "from .second import VALUE",
        "from . import second",
        "def load():\n    from package.second import VALUE",
        "if TYPE_CHECKING:\n    from package.second import VALUE",
    ],
)
def test_a_circle_is_found_however_the_import_is_written(tmp_path: Path, statement: str) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "first.py").write_text(statement)
    (package / "second.py").write_text("from package.third import VALUE\n")
    (package / "third.py").write_text("import os\nfrom package.first import VALUE\n")
    assert set(circle_of(import_graph(tmp_path))) == {"package.first", "package.second", "package.third"}


def test_no_folder_has_more_files_than_a_reader_can_survey() -> None:
    files = Counter(path.parent for path in (SOURCE / "pillarbox").rglob("*.py"))
    assert {str(folder): count for folder, count in files.items() if count > MOST_FILES} == {}


SHARED_BY_ALL = {"kernel", "mail", "schema"}
"""Packages of `pillarbox` that are no slices."""


def foreign_doors(source: Path = SOURCE) -> list[str]:
    """The imports of another slice's `routes`, or of functions and statements of its `*queries`. A type of
    rows may be named: functions of the slice return it."""
    found = []
    for path in sorted((source / "pillarbox").rglob("*.py")):
        slice_ = path.relative_to(source / "pillarbox").parts[0]
        for name in imported_names(path, tree_of(path), source):
            root, *parts = name.split(".")
            if root != "pillarbox" or len(parts) < 2 or parts[0] in {slice_, *SHARED_BY_ALL}:
                continue
            last, above = parts[-1], parts[1:-1]
            is_type = last[0].isupper() and not last.isupper()
            if (
                "routes" in parts[1:]
                or last.endswith("queries")
                or (not is_type and "queries" in "".join(above))
            ):
                found.append(f"{path.relative_to(source / 'pillarbox')}: {name}")
    return found


def test_a_slice_uses_no_queries_and_routes_of_another() -> None:
    """docs/architecture.md 3."""
    assert foreign_doors() == [], "call a function of the other slice; it calls its query"


@pytest.mark.parametrize(
    ("statement", "is_foreign"),
    [
        ("from pillarbox.second import queries", True),
        ("from pillarbox.second.deep import row_queries as rows", True),
        ("from pillarbox.second.queries import find", True),
        ("from pillarbox.second.queries import FIND", True),
        ("from pillarbox.second.routes import Screens", True),
        ("def load():\n    import pillarbox.second.queries", True),
        ("from pillarbox.second.queries import FoundRow", False),
        ("from pillarbox.second.store import find", False),
        ("from pillarbox.first import queries", False),
        ("from pillarbox.kernel.work import poll_queries", False),
    ],
)
def test_queries_and_routes_of_another_slice_are_found(
    tmp_path: Path, statement: str, *, is_foreign: bool
) -> None:
    package = tmp_path / "pillarbox" / "first"
    package.mkdir(parents=True)
    (package / "store.py").write_text(statement)
    assert bool(foreign_doors(tmp_path)) is is_foreign


SMALL = 60
"""Lines below which a module with one user beside it is a part of that one."""

SHAPE = {
    *("__init__", "collectors", "commands", "event_data", "invariants", "jobs", "manifest", "misdated"),
    *(
        "personal_data",
        "plugin",
        "prometheus",
        "removal",
        "restored",
        "retention",
        "routes",
        "settings",
        "wire",
    ),
}
"""Names that have their place in each slice, however small they are."""

SMALL_ON_PURPOSE = {
    "pillarbox.automations.execution.mail_waits": "waits for mail beside those for events of contacts",
    "pillarbox.contacts.imports.speed": "a rule in numbers, with tests of its own",
    "pillarbox.dashboard.icon": "a picture, drawn once",
    "pillarbox.dashboard.inboxes.search_operators": "a reader of a text, with tests of its own",
    "pillarbox.delivery.retries": "the table of retries",
    "pillarbox.delivery.smtp.tls_modes": "the table of how TLS is wanted",
    "pillarbox.doctor.clocks": "as above",
    "pillarbox.doctor.smarthost": "opens a session as delivery does; the checks know no SMTP",
    "pillarbox.emails.files": "handed to a higher slice by the plugin",
    "pillarbox.inboxes.drafts.lists": "lists are modules of their own in all packages of inboxes",
    "pillarbox.inboxes.waiting.shared_readings": "a data structure with tests of its own",
    "pillarbox.mail.reports.quoted_replies": "a table of patterns",
    "pillarbox.mail.smtp.lines": "a reader of lines, which the client does not share",
    "pillarbox.people.factors.recovery_codes": "a kind of second factor, as passkeys and TOTP are",
    "pillarbox.receiving.reports.complaints": "a kind of report, as bounces are",
    "pillarbox.segments.audiences.members": "the same verbs for another resource",
    "pillarbox.smtp.local": "a listener, where the plugin only connects",
    "pillarbox.timeline.announcing": "as above",
    "pillarbox.webhooks.dispatch.schedule": "the table of attempts",
}


def small_parts(source: Path = SOURCE) -> set[str]:
    """Small modules that only one other module of their folder uses."""
    users: dict[str, set[str]] = {}
    for module, found in import_graph(source).items():
        for used in found:
            users.setdefault(used, set()).add(module)
    small = set()
    for path in source.rglob("*.py"):
        module = module_name(path, source)
        folders = {user.rpartition(".")[0] for user in users.get(module, ())}
        if len(users.get(module, ())) != 1 or folders != {module.rpartition(".")[0]}:
            continue
        if path.stem in SHAPE or path.stem.endswith("queries"):
            continue
        if len(text_of(path).splitlines()) < SMALL:
            small.add(module)
    return small


def test_a_small_module_with_one_user_beside_it_is_part_of_that_one() -> None:
    assert small_parts() == SMALL_ON_PURPOSE.keys(), "merge it into its user, or say here why not"


def test_a_small_part_is_found(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "first.py").write_text("from package.second import VALUE\nfrom package.wire import SHAPE\n")
    (package / "second.py").write_text("VALUE = 1\n")
    (package / "wire.py").write_text("SHAPE = 1\n")
    assert small_parts(tmp_path) == {"package.second"}
