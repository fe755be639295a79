"""Each command that there is, in the situations in which an operator may be: it ends with a sentence."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.exceptions import TyperException
from typer.testing import CliRunner

from cli.conftest import Installation
from kit.command_table import CommandEntry, command_table, parsed, traceback_of
from kit.examples import PAGES, ROOT, examples_of
from kit.process import environment
from pillarbox.cli import program

pytestmark = pytest.mark.sweep

TABLE = command_table()
WORDS = {entry.name: entry for entry in TABLE}
RING = "k9:" + "Q" * 43 + "="

WITHOUT_END = ("serve", "webhooks listen")
"""They run until a signal: not for a test that gives them all they need."""


def invoked(entry: CommandEntry, *arguments: str, stdin: bytes = b"", **variables: str) -> str:
    """Run it in this process; what it printed. It must end, and not with a traceback."""
    words = [*entry.words, *entry.required(), *arguments]
    done = CliRunner().invoke(program(), words, input=stdin, env=variables)
    assert traceback_of(done.exception) is None, f"{words}: {traceback_of(done.exception)}"
    assert "Traceback" not in done.output
    return done.output


def placed(entry: CommandEntry, data: Path, url: str | None = None) -> list[str]:
    """The options that say where the installation is, as far as the command has them."""
    given = {"--data": str(data)} | ({} if url is None else {"--database-url": url})
    return [word for name, text in given.items() if name in entry.options() for word in (name, text)]


@contextmanager
def in_folder(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@pytest.fixture(scope="module")
def shared_copy(
    made_harbor: Installation, databases: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    """A copy of the harbor that the commands may change."""
    folder = tmp_path_factory.mktemp("copy") / "data"
    shutil.copytree(made_harbor.folder, folder)
    url = databases.fresh(template=made_harbor.url.removeprefix("postgresql:///").split("?")[0])
    yield Installation(url, folder)
    databases.drop(url)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path) -> Iterator[None]:
    """What a command writes by accident does not fall into the sources."""
    (tmp_path / "here").mkdir()
    with in_folder(tmp_path / "here"):
        yield


URLS = (
    "postgresql://ann@127.0.0.1:1/harbor",
    "nonsense",
    "postgresql://[::1/x",
    "postgresql://127.0.0.1:port/x",
    "postgresql://127.0.0.1:99999/x",
    "postgresql://127.0.0.1:1/x?sslmode=perhaps",
    "postgresql:///x?host=/nowhere",
    "postgresql://127.0.0.1:1/x?sslmode=verify-full&sslrootcert=/nowhere",
)

NO_SERVERS = [entry for entry in TABLE if entry.name not in WITHOUT_END]


@pytest.mark.parametrize("entry", NO_SERVERS, ids=lambda entry: entry.name)
def test_without_an_installation_it_says_so_and_makes_nothing(entry: CommandEntry, tmp_path: Path) -> None:
    invoked(entry, *placed(entry, tmp_path / "data"))
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("entry", NO_SERVERS, ids=lambda entry: entry.name)
def test_without_a_database_it_says_so(entry: CommandEntry, tmp_path: Path) -> None:
    for url in URLS:
        invoked(entry, *placed(entry, tmp_path / "data", url))


@pytest.mark.parametrize("entry", NO_SERVERS, ids=lambda entry: entry.name)
def test_words_that_mean_nothing_here_are_named(
    entry: CommandEntry, shared_copy: Installation, tmp_path: Path
) -> None:
    """Ids of nothing, no answer to a question, and a key ring of another installation."""
    if entry.name in ("maintenance on", "maintenance off", "keyring reseal", "upgrade", "doctor"):
        pytest.skip("waits, or looks at the network; the same code as of the others answers")
    data = shared_copy.folder if entry.name not in ("restore",) else tmp_path / "data"
    place = placed(entry, data, shared_copy.url)
    invoked(entry, *place, PILLARBOX_SECRET_KEY=RING)
    invoked(entry, *place)


def test_an_empty_database_is_named_as_one(databases: Any, tmp_path: Path) -> None:
    url = databases.fresh(template="template0")
    try:
        for entry in NO_SERVERS:
            if entry.name not in ("restore", "keyring reseal"):
                invoked(entry, *placed(entry, tmp_path / "data", url))
    finally:
        databases.drop(url)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [(b"n\n", "Nothing was changed."), (b"\n", "Nothing was changed."), (b"", "--yes does not ask")],
)
def test_who_does_not_say_yes_changes_nothing(harbor: Installation, answer: bytes, sentence: str) -> None:
    before = harbor.sql("SELECT count(*) FROM deliveries")
    done = harbor.run("queue", "drop", "--all", stdin=answer)
    assert done.exit_code == 1, traceback_of(done.exception)
    assert sentence in done.stderr
    assert harbor.sql("SELECT count(*) FROM deliveries") == before
    assert harbor.run("queue", "drop", "--all", stdin=b"what\ny\n").exit_code == 0


def test_all_is_what_a_retry_without_a_choice_means(harbor: Installation) -> None:
    assert "tried now" in harbor.run("queue", "retry", "--all").output
    assert harbor.run("queue", "retry", "--all", "--domain", "quay.example").exit_code == 2


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("words", ["version", "queue", "backup target --data .", "serve --http nowhere"])
def test_closed_streams_are_no_traceback(tmp_path: Path, closed: str, words: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f"exec {shlex.quote(sys.executable)} -m pillarbox {words} {closed}"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "Traceback" not in done.stdout + done.stderr
    assert done.returncode in (0, 1, 2)


LINE = re.compile(r"(?:^|[\s(])(?:exec pillarbox )?(?:script/)?pillarbox (?P<rest>.*)")
CONTROL = ("|", "||", "&", "&&", ";", ">", ">>", "<", ")", "2>")
SPAN = re.compile(r"`(?:script/)?pillarbox ([^`\n]*\w[^`\n]*)`")


UNFINISHED = ("MissingParameter", "BadParameter", "BadOptionUsage", "NoArgsIsHelpError")


def command_lines(text: str) -> Iterator[list[str]]:
    """The words behind `pillarbox` in each line of a shell script."""
    for line in text.replace("\\\n", " ").splitlines():
        found = LINE.search(line.partition(" #")[0])
        if found is not None and not line.lstrip().startswith(("#", "$ #")):
            lexer = shlex.shlex(found["rest"], posix=True, punctuation_chars=True)
            lexer.whitespace_split = True
            words: list[str] = []
            for word in lexer:
                if word in CONTROL or set(word) <= set("();<>|&"):
                    break
                words.append(word)
            yield words


def documented() -> Iterator[tuple[str, list[str], bool]]:
    """Page, words, and whether it is a whole command line and not the mention of one."""
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        for example in examples_of(page, text):
            if example.language in ("sh", "bash"):
                yield from ((page, words, True) for words in command_lines(example.text))
        for found in SPAN.findall(re.sub(r"```.*?```", "", text, flags=re.S)):
            yield page, shlex.split(re.sub(r"[\[\]…]", "", found)), False


@pytest.mark.parametrize("page", PAGES)
def test_every_command_line_of_the_guide_is_one(page: str) -> None:
    wrong = []
    for where, words, is_whole in documented():
        if where != page or not words:
            continue
        try:
            parsed(words)
        except TyperException as problem:
            # A mention leaves arguments out, and names values by a word.
            if is_whole or type(problem).__name__ not in UNFINISHED:
                wrong.append(f"{shlex.join(words)}: {problem.format_message()}")  # type: ignore[attr-defined]
    assert wrong == []


def test_questions_are_asked_in_one_place() -> None:
    """Where a signal ends the wait, and no answer is a sentence."""
    asking = re.compile(r"\btyper\.(?:confirm|prompt)\(|\bgetpass\.getpass\(|(?<![\w.])input\(")
    found = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "src").rglob("*.py")
        if asking.search(path.read_text(encoding="utf-8"))
    ]
    assert found == ["src/pillarbox/kernel/terminal/questions.py"]


def test_nothing_is_said_while_a_progress_bar_is_shown() -> None:
    """It would begin behind the bar, in the same line."""
    import ast

    saying = {"say", "show_table", "show_json"}
    found = []
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "transfer(" not in text:
            continue
        for block in ast.walk(ast.parse(text)):
            if isinstance(block, ast.With) and any("transfer(" in ast.unparse(item) for item in block.items):
                calls = [one for one in ast.walk(block) if isinstance(one, ast.Call)]
                found += [
                    f"{path.name}:{call.lineno}"
                    for call in calls
                    if isinstance(call.func, ast.Name) and call.func.id in saying
                ]
    assert found == []
