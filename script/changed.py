"""Which test files a change touches (bench/MEASUREMENTS.md, 8), a line each.

    changed.py near          the nearest of them, for the seconds between two edits
    changed.py all           all of them
    changed.py --keep near   the run of these was well: the next one begins from what they saw

What changed is told by the contents of files since the last such run that was well, else by `git diff HEAD`.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePath

ROOT = Path(__file__).resolve().parent.parent
COMPOSITION = (
    "pillarbox.app",
    "pillarbox.application",
    "pillarbox.cli",
    "pillarbox.worker",
    "pillarbox.fork_server",
    "pillarbox.__main__",
    "conftest",
    "kit.world",
    "kit.served",
    "kit.process",
)
"""They import every part. What only they lead to is not near."""

KIN = {
    "src/pillarbox/kernel/http/": "*/test_conventions*",
    "src/pillarbox/kernel/wire/": "*/test_conventions*",
    "src/pillarbox/kernel/settings/": "*/test_settings*",
    "src/pillarbox/kernel/process/": "*/test_supervisor*",
    "src/pillarbox/schema/": "tests/schema/*",
    "src/pillarbox/dashboard/": "*_page*",
}
"""Tests of parts whose names do not say so."""

BUDGET = 25.0
"""Seconds that the near ones take together, by tests/file_seconds.txt; changed tests come on top."""
USUAL_FILE = 3.0
MANY = 12
"""A name or text that more test files have says nothing about what a change means for them."""
TEXT = re.compile(r'"([^"]*)"|\'([^\']*)\'')
NAME = re.compile(r"\b(?:\w+_\w+|\w+[a-z][A-Z]\w+|\w+(?=\s*[:=(]))")
FOLDERS = ("src", "tests", "bench", "docs", "script", "requirements", "deploy")
FIXED_NAMES = {"src", "pillarbox", "kernel", "tests", "test", "plugin", "routes", "wire", "queries", "jobs"}


@dataclass(frozen=True, slots=True)
class Mentions:
    """What a Python file names: modules by its imports, files and folders by its texts."""

    modules: frozenset[str]
    texts: frozenset[str]


Tree = Mapping[str, Mentions]
"""Every file by its path from the root; a file that is not Python mentions nothing."""


# The tree -----------------------------------------------------------------------------------------


def contents(root: Path) -> dict[str, str]:
    """The digest of every file that git has or would take; without git, of what a checkout holds."""
    try:
        listed = lines_of(root, "git", "ls-files", "--cached", "--others", "--exclude-standard")
    except (OSError, subprocess.CalledProcessError):
        listed = [str(path.relative_to(root)) for top in FOLDERS for path in (root / top).rglob("*")]
    files = ((name, root / name) for name in listed if "__pycache__" not in name)
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files if path.is_file()}


def lines_of(root: Path, *command: str) -> list[str]:
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.splitlines()


def mentions(source: bytes) -> Mentions:
    modules: set[str] = set()
    texts: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
            # import_module(f"pillarbox.cli.{name}")
            begin = str(node.values[0].value)
            modules |= {f"{begin}*"} if re.fullmatch(r"pillarbox\.([\w.]+\.)?", begin) else set()
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 100:
            texts.add(node.value)
    names = {text for text in texts if re.fullmatch(r"(pillarbox|kit)(\.\w+)*", text)}
    paths = {text for text in texts if re.fullmatch(r"\.?[\w*][\w.*/\[\]-]+", text)}
    return Mentions(frozenset(modules | names), frozenset(paths))


def read_tree(root: Path, digests: Mapping[str, str], cache: Path) -> dict[str, Mentions]:
    """The files with what they mention, which is kept by their digests: reading all of them takes seconds."""
    known = json.loads(cache.read_text(encoding="utf-8")) if cache.exists() else {}
    tree, kept = {}, {}
    for path, digest in digests.items():
        if not path.endswith(".py"):
            tree[path] = Mentions(frozenset(), frozenset())
            continue
        if digest not in known:
            try:
                found = mentions((root / path).read_bytes())
            except SyntaxError:
                found = Mentions(frozenset(), frozenset())
            known[digest] = [sorted(found.modules), sorted(found.texts)]
        kept[digest] = known[digest]
        tree[path] = Mentions(*map(frozenset, known[digest]))
    if kept.keys() != known.keys() or not cache.exists():
        cache.write_text(json.dumps(kept), encoding="utf-8")
    return tree


def module_of(path: str) -> str:
    name = path.removeprefix("src/").removeprefix("tests/").removesuffix(".py").replace("/", ".")
    return name.removesuffix(".__init__")


def is_test(path: str) -> bool:
    return path.startswith("tests/") and fnmatch(path.rpartition("/")[2], "test_*.py")


# What sees what -----------------------------------------------------------------------------------


def reads(said: Mentions, path: str) -> bool:
    """Whether a file names this one: by its path or name, or by its folder with a suffix or a pattern."""
    folder, _, name = path.rpartition("/")
    suffix = Path(name).suffix
    if any("." in text and f"/{path}".endswith(f"/{text}") for text in said.texts):
        return True
    if not any(path.startswith(f"{text}/") or f"/{folder}".endswith(f"/{text}") for text in said.texts):
        return False
    return (suffix or name) in said.texts or any("*." in text and fnmatch(name, text) for text in said.texts)


def importers(tree: Tree) -> dict[str, set[str]]:
    """The files that load a module: that import it, something in it, or a part of its package."""
    found: dict[str, set[str]] = {}
    for path, said in tree.items():
        for name in said.modules:
            parts = name.split(".")
            for length in range(1, len(parts) + 1):
                found.setdefault(".".join(parts[:length]), set()).add(path)
    return found


def users(tree: Tree, loaded: Mapping[str, set[str]], path: str) -> set[str]:
    """The files that import this one, that pytest imports with it, or that read it."""
    if not path.endswith(".py"):
        # What the program reads lies in it; a name in its other texts is a link or a word.
        top = ("src/", "tests/") if path.startswith("src/") else ("tests/",)
        return {user for user, said in tree.items() if user.startswith(top) and reads(said, path)}
    if path.endswith("/conftest.py"):
        folder = path.removesuffix("conftest.py")
        return {user for user in tree if is_test(user) and user.startswith(folder)}
    module = module_of(path)
    return (loaded.get(module, set()) | loaded.get(f"{module.rpartition('.')[0]}.*", set())) - {path}


def distances(tree: Tree, paths: Iterable[str], *, through_composition: bool) -> dict[str, int]:
    """How many imports lie between the changed files and each file that sees them."""
    loaded = importers(tree)
    found = dict.fromkeys(paths, 0)
    edge, distance = list(found), 0
    while edge:
        distance += 1
        further = [
            user
            for path in edge
            if through_composition or distance == 1 or not module_of(path).startswith(COMPOSITION)
            for user in users(tree, loaded, path)
        ]
        edge = [user for user in dict.fromkeys(further) if user not in found]
        found.update(dict.fromkeys(edge, distance))
    return found


def readers(tree: Tree, paths: Iterable[str]) -> set[str]:
    """The tests that read what changed, as the lints do that look at every source."""
    return {user for path in paths for user, said in tree.items() if is_test(user) and reads(said, path)}


def words(path: str) -> set[str]:
    """The words of a path, without the ending of a plural."""
    return {
        word.removesuffix("s")
        for word in re.findall(r"[a-z]+", path.removesuffix(".py"))
        if word not in FIXED_NAMES
    }


def kinship(test: str, path: str) -> int:
    """How many words of the path the test has in its own, and more where it is the test of that part or has
    its name."""
    kin = any(path.startswith(part) and fnmatch(test, pattern) for part, pattern in KIN.items())
    is_named = PurePath(test).name == f"test_{PurePath(path).name}"
    return len(words(test) & words(path)) + 2 * kin + 2 * is_named


# What repeats it ----------------------------------------------------------------------------------


def changed_words(root: Path) -> set[str]:
    """The names and texts that the lines differ in which are not committed: fields, error texts, statements.
    With them the names of the functions around those lines."""
    try:
        lines = lines_of(root, "git", "diff", "--unified=0", "HEAD", "--", "src", "script", "bench")
    except (OSError, subprocess.CalledProcessError):
        return set()
    before, after, around = set(), set(), set()
    for line in lines:
        if line.startswith("@@"):
            around |= set(re.findall(r"(?:def|class) (\w+)", line))
        elif line.startswith("-") and not line.startswith("---"):
            before |= words_in(line[1:])
        elif line.startswith("+") and not line.startswith("+++"):
            after |= words_in(line[1:])
    return (before ^ after) | around


def words_in(line: str) -> set[str]:
    """Its names, and the pieces of its texts without what is put into them. A plain word counts where it is
    declared, given a value or called: elsewhere it may be prose."""
    texts = [first or second for first, second in TEXT.findall(line)]
    pieces = {piece.strip() for text in texts for piece in re.split(r"\{[^}]*\}", text)}
    return {word for word in {*pieces, *NAME.findall(TEXT.sub(" ", line))} if len(word) > 4}


def repeating(root: Path, tests: Iterable[str], repeated: Iterable[str]) -> dict[str, float]:
    """The tests that have one of these words, with how much that says: the rarer the word the more."""
    texts = {test: (root / test).read_text(encoding="utf-8", errors="replace") for test in tests}
    found: dict[str, float] = {}
    for word in repeated:
        whole = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
        having = [test for test, text in texts.items() if word in text and whole.search(text)]
        if len(having) <= MANY:
            for test in having:
                found[test] = found.get(test, 0) + 1 / len(having)
    return found


# The choice ---------------------------------------------------------------------------------------


def touched(tree: Tree, paths: set[str]) -> list[str]:
    """All test files that are changed, that import what is changed, or that read it."""
    seen = distances(tree, paths, through_composition=True).keys() | readers(tree, paths)
    return sorted(path for path in seen if is_test(path) and path in tree)


def nearest(
    tree: Tree, paths: set[str], seconds: Mapping[str, float], repeated: Mapping[str, float] | None = None
) -> list[str]:
    """The changed tests, then those that repeat a word of the change (`repeated`), those that import what is
    changed or read it where it is no Python, those of its name, and those that import it by others: as many
    as fit into the budget."""
    repeated = repeated or {}
    lengths = distances(tree, paths, through_composition=False)
    # Lints read every module; `script/lint` has them.
    reading = readers(tree, [path for path in paths if not path.endswith(".py")])

    def rank(test: str) -> tuple[int, float, int, float]:
        kin = max(kinship(test, path) for path in paths)
        imports = test in reading or lengths.get(test) == 1
        near = 0 if test in paths else 1 if test in repeated else 2 if imports else 3 if kin else 4
        return near, -repeated.get(test, 0), -kin, seconds.get(test, USUAL_FILE)

    chosen, spent = [], 0.0
    for test in sorted(sorted({*touched(tree, paths), *repeated}), key=rank):
        near, *_, cost = rank(test)
        if near == 0:
            chosen.append(test)
        elif (near < 4 or test in lengths) and spent + cost <= BUDGET:
            chosen.append(test)
            spent += cost
    return sorted(chosen)


# The command --------------------------------------------------------------------------------------


def changed(root: Path, now: Mapping[str, str], note: Path) -> set[str]:
    if note.exists():
        before = json.loads(note.read_text(encoding="utf-8"))
        return {path for path in now.keys() | before.keys() if now.get(path) != before.get(path)}
    try:
        return {
            *lines_of(root, "git", "diff", "--name-only", "HEAD"),
            *lines_of(root, "git", "ls-files", "--others", "--exclude-standard"),
        }
    except (OSError, subprocess.CalledProcessError):
        return set(now)


def recorded(root: Path) -> dict[str, float]:
    file = root / "tests" / "file_seconds.txt"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return {path: float(seconds) for seconds, path in (line.split() for line in lines)}


def main(arguments: list[str], root: Path = ROOT) -> None:
    caches = root / ".venv" / "caches"
    caches.mkdir(parents=True, exist_ok=True)
    which = arguments[-1]
    note, begun = caches / f"tested-{which}.json", caches / f"testing-{which}.json"
    if "--keep" in arguments:
        begun.replace(note)
        return
    now = contents(root)
    # What is edited while the tests run is not tested.
    begun.write_text(json.dumps(now), encoding="utf-8")
    paths = changed(root, now, note)
    tree = read_tree(root, now, caches / "mentions.json")
    repeated = repeating(root, filter(is_test, tree), changed_words(root)) if paths else {}
    every = sorted({*touched(tree, paths), *repeated})
    chosen = every if which == "all" or not paths else nearest(tree, paths, recorded(root), repeated)
    print("\n".join(chosen))
    if len(chosen) < len(every):
        print(
            f"{len(every)} test files see this change; for the others: script/test --changed=all",
            file=sys.stderr,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
