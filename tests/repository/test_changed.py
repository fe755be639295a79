"""`script/test --changed` finds the tests that see a change (bench/MEASUREMENTS.md, 8)."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

FILES = {
    "src/pillarbox/__init__.py": "",
    "src/pillarbox/app.py": "from pillarbox.quays import routes\nfrom pillarbox.harbors import routes",
    "src/pillarbox/quays/__init__.py": "",
    "src/pillarbox/quays/routes.py": "from pillarbox.quays.depth import DEPTH",
    "src/pillarbox/quays/depth.py": "from pillarbox.kernel.units import METRE",
    "src/pillarbox/harbors/__init__.py": "",
    "src/pillarbox/harbors/routes.py": 'page("harbor.html")',
    "src/pillarbox/harbors/templates/harbor.html": "<p>",
    "src/pillarbox/kernel/__init__.py": "",
    "src/pillarbox/kernel/units.py": "METRE = 1",
    "src/pillarbox/schema/migrations/0001_begin.sql": "SELECT 1",
    "src/pillarbox/kernel/migrations.py": '(FOLDER / "migrations").glob("*.sql")',
    "src/pillarbox/cli/__init__.py": 'def load(name):\n    import_module(f"pillarbox.cli.{name}")',
    "src/pillarbox/cli/moor.py": "",
    "docs/guide/metrics.md": "A quay.",
    "script/moor": "#!/bin/sh",
    "tests/conftest.py": "import pillarbox.kernel.migrations",
    "tests/kit/world.py": "from pillarbox.app import quays",
    "tests/api/test_quays.py": "from kit.world import world",
    "tests/api/test_harbors.py": "from kit.world import world",
    "tests/cli/conftest.py": "import pillarbox.cli",
    "tests/cli/test_moor.py": "",
    "tests/quays/test_depth.py": "from pillarbox.quays.depth import DEPTH",
    "tests/kernel/test_units.py": "from pillarbox.kernel import units",
    "tests/repository/test_links.py": 'FOLDERS = ("docs",)\nSUFFIXES = {".md"}',
    "tests/repository/test_scripts.py": 'SCRIPTS = ROOT / "script" / "moor"',
    "tests/repository/test_sizes.py": '(ROOT / "src").rglob("*.py")',
}
WORLD = {"api/test_quays", "api/test_harbors"}
SIZES = {"repository/test_sizes"}
OF_CONFTEST = {
    "api/test_quays",
    "api/test_harbors",
    "cli/test_moor",
    "quays/test_depth",
    "kernel/test_units",
} | {f"repository/test_{name}" for name in ("links", "scripts", "sizes")}


@pytest.fixture(scope="module")
def changed() -> ModuleType:
    spec = importlib.util.spec_from_file_location("changed", ROOT / "script" / "changed.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["changed"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def ours(changed: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """This checkout."""
    cache = tmp_path_factory.mktemp("caches") / "mentions.json"
    return changed.read_tree(ROOT, changed.contents(ROOT), cache)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / ".gitignore").write_text(".venv\n")
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def commit(folder: Path) -> None:
    author = ("-c", "user.name=Ann", "-c", "user.email=ann@harbor.example")
    git(folder, "add", "--all")
    git(folder, *author, "commit", "--quiet", "-m", "Begin")


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True)


Ask = Callable[..., set[str]]


@pytest.fixture
def ask(changed: ModuleType, checkout: Path, capsys: pytest.CaptureFixture[str]) -> Ask:
    def asked(*arguments: str) -> set[str]:
        changed.main(list(arguments), checkout)
        return {line.removeprefix("tests/").removesuffix(".py") for line in capsys.readouterr().out.split()}

    return asked


@pytest.mark.parametrize(
    ("path", "near", "every"),
    [
        (
            "src/pillarbox/quays/routes.py",
            {"api/test_quays"},
            WORLD | SIZES,
        ),
        (
            "src/pillarbox/quays/depth.py",
            {"api/test_quays", "quays/test_depth"},
            WORLD | {"quays/test_depth"} | SIZES,
        ),
        (
            "src/pillarbox/kernel/units.py",
            {"kernel/test_units", "quays/test_depth"},
            WORLD | {"kernel/test_units", "quays/test_depth"} | SIZES,
        ),
        ("src/pillarbox/harbors/templates/harbor.html", {"api/test_harbors"}, WORLD),
        ("src/pillarbox/cli/moor.py", {"cli/test_moor"}, {"cli/test_moor"} | SIZES),
        ("src/pillarbox/schema/migrations/0001_begin.sql", None, OF_CONFTEST),
        ("docs/guide/metrics.md", {"repository/test_links"}, {"repository/test_links"}),
        ("script/moor", {"repository/test_scripts"}, {"repository/test_scripts"}),
        ("tests/quays/test_depth.py", {"quays/test_depth"}, {"quays/test_depth"}),
        ("tests/cli/conftest.py", {"cli/test_moor"}, {"cli/test_moor"}),
        ("tests/kit/world.py", WORLD, WORLD),
    ],
)
def test_a_change_selects_what_sees_it(
    ask: Ask, checkout: Path, path: str, near: set[str] | None, every: set[str]
) -> None:
    (checkout / path).write_text(FILES[path] + "\n\n")
    assert ask("all") == every
    assert near is None or ask("near") == near


def test_nothing_changed_selects_nothing(ask: Ask) -> None:
    assert ask("near") == ask("all") == set()


def test_what_a_deleted_file_leaves_behind_is_selected(ask: Ask, checkout: Path) -> None:
    (checkout / "src/pillarbox/kernel/units.py").unlink()
    (checkout / "tests/api/test_harbors.py").unlink()
    assert ask("all") == {"api/test_quays", "kernel/test_units", "quays/test_depth"} | SIZES


def test_a_new_test_is_selected_and_a_file_that_does_not_parse_stops_nothing(
    ask: Ask, checkout: Path
) -> None:
    (checkout / "tests/quays/test_new.py").write_text("def")
    assert ask("near") == ask("all") == {"quays/test_new"}


def test_a_run_that_was_well_is_remembered_as_it_began(ask: Ask, checkout: Path) -> None:
    source = checkout / "src/pillarbox/cli/moor.py"
    source.write_text("A = 1")
    assert ask("near") == {"cli/test_moor"}
    (checkout / "docs/guide/metrics.md").write_text("Edited while the tests ran.")
    ask("--keep", "near")
    assert ask("near") == {"repository/test_links"}
    # The run of all remembers for itself.
    assert ask("all") == {"cli/test_moor", "repository/test_links"} | SIZES
    source.write_text("")
    assert ask("near") == {"cli/test_moor", "repository/test_links"}


def test_tests_that_repeat_what_was_changed_come_before_those_that_import_it(
    ask: Ask, checkout: Path
) -> None:
    """They need not import it: a program that they start says it."""
    text = 'raise Shallow(f"The water at {quay} is too low.")'
    source = checkout / "src/pillarbox/quays/depth.py"
    source.write_text(text)
    repeats = checkout / "tests/sdk/test_moor.py"
    repeats.parent.mkdir()
    repeats.write_text('assert message == "The water at 7 is too low."')
    (checkout / "tests/file_seconds.txt").write_text(
        "20 tests/sdk/test_moor.py\n20 tests/quays/test_depth.py\n"
    )
    commit(checkout)
    source.write_text(text.replace("too", "much too"))
    assert ask("near") == {"sdk/test_moor", "api/test_quays"}
    source.write_text(text.replace("quay", "berth"))
    assert "sdk/test_moor" not in ask("near"), "its words stay as they were"


def test_a_word_of_many_tests_tells_nothing(changed: ModuleType, checkout: Path) -> None:
    tests = [f"tests/quays/test_{number}.py" for number in range(changed.MANY + 1)]
    for test in tests:
        (checkout / test).write_text("assert answer.last_event == 'moored'")
    assert changed.repeating(checkout, tests, {"last_event"}) == {}
    (checkout / tests[0]).write_text("assert answer.last_event_at")
    assert changed.repeating(checkout, tests, {"last_event"}).keys() == {*tests[1:]}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            'raise Problem(f"The domain {name} is gone", "last_event")',
            "Problem|The domain|is gone|last_event",
        ),
        ("    recipients: int  # prose of a comment", "recipients"),
        ("       AND w.leased_until < $1", "leased_until"),
        ("    Plain words of a docstring, and more.", ""),
    ],
)
def test_names_and_texts_of_a_line(changed: ModuleType, line: str, words: str) -> None:
    assert changed.words_in(line) == {*words.split("|")} - {""}


def test_what_does_not_fit_into_the_budget_is_left_to_the_run_of_all(ask: Ask, checkout: Path) -> None:
    """The changed test runs however long it takes."""
    (checkout / "tests/file_seconds.txt").write_text(
        "90 tests/quays/test_depth.py\n90 tests/api/test_quays.py\n"
    )
    git(checkout, "add", "--all")
    (checkout / "src/pillarbox/quays/depth.py").write_text("DEPTH = 2")
    assert ask("near") == set()
    (checkout / "tests/quays/test_depth.py").write_text("import pillarbox.quays.depth\n")
    assert ask("near") == {"quays/test_depth"}


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("src/pillarbox/webhooks/routes.py", "tests/api/test_webhooks.py"),
        ("src/pillarbox/kernel/http/request.py", "tests/api/test_conventions_framing.py"),
        ("src/pillarbox/delivery/commands/queue.py", "tests/cli/test_queue.py"),
        ("src/pillarbox/mail/message/compose.py", "tests/mail/test_compose.py"),
        ("src/pillarbox/schema/schema.sql", "tests/schema/test_schema.py"),
        ("docs/standards.md", "tests/repository/test_standards.py"),
        (".ci/run", "tests/repository/test_scripts.py"),
    ],
)
def test_the_tests_of_a_part_are_near(changed: ModuleType, ours: Any, path: str, near: str) -> None:
    assert near in changed.nearest(ours, {path}, changed.recorded(ROOT))


def test_without_git_everything_is_touched_once(
    ask: Ask, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    assert ask("all") == OF_CONFTEST
    ask("--keep", "all")
    assert ask("all") == set()
