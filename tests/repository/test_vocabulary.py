"""One word means one thing: names of classes are unique and say what the thing is, parameters what they hold.

What to do where one of these tests fails: take the word that the API, the RFC or PostgreSQL has for it. A row
or a result carries its resource (`ContactRow`, `ClaimVerdict`), a shape of the wire the name that
`/openapi.json` shows.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

from kit.sources import nodes_of, tree_of

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "pillarbox"

IRREGULAR = frozenset(
    {
        *("Begun", "Born", "Broken", "Chosen", "Cut", "Done", "Found", "Frozen", "Given", "Gone", "Held"),
        *("Hidden", "Kept", "Known", "Lost", "Made", "Met", "Put", "Read", "Said", "Seen", "Sent", "Set"),
        *("Shown", "Spoken", "Taken", "Told", "Wanted", "Won", "Written"),
    }
)
NOUNS = frozenset({"Greeting", "Setting", "Speed"})
"""Words that end like participles and are nouns of the field."""

SHAPES = frozenset({"Assigned", "Counted", "Embedded"})
"""Shapes of the wire whose names stand in `/openapi.json`."""

REFUSED = {
    "at": "now, instant, or index",
    "found": "the name of what was found",
    "made": "the name of what was made",
    "most": "limit",
    "one": "the name of the item",
    "others": "the name of the items",
    "said": "reply, text, or line",
    "told": "the name of the message",
    "wanted": "the name of what is asked for",
}
"""Parameter names that do not say what they hold, and what to write."""


def classes() -> Iterator[tuple[str, str]]:
    for path in sorted(SOURCE.rglob("*.py")):
        for node in nodes_of(path):
            if isinstance(node, ast.ClassDef):
                yield node.name, str(path.relative_to(SOURCE))


def is_participle(name: str) -> bool:
    word = name.lstrip("_")
    if not word.isalpha() or word[1:] != word[1:].lower() or word in NOUNS | SHAPES:
        return False
    return word.endswith(("ed", "ing")) or word in IRREGULAR


def refused_parameters(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = node.args
            for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
                if argument.arg in REFUSED:
                    yield f"{node.name}({argument.arg}): say {REFUSED[argument.arg]}"


def test_the_name_of_a_class_is_unique() -> None:
    places = defaultdict(list)
    for name, path in classes():
        places[name].append(path)
    shared = {name: paths for name, paths in places.items() if len(paths) > 1}
    assert shared == {}, "name each after its resource"


def test_no_class_is_a_single_participle() -> None:
    offenders = [f"{path}: {name}" for name, path in classes() if is_participle(name)]
    assert offenders == [], "name the thing, not what happened to it"


def test_parameters_say_what_they_hold() -> None:
    offenders = [
        f"{path.relative_to(SOURCE)}: {offence}"
        for path in sorted(SOURCE.rglob("*.py"))
        for offence in refused_parameters(ast.parse(path.read_text()))
    ]
    assert offenders == []


LONGEST_SENTENCE = 30
"""Words; what is longer has to be read twice."""

PARAGRAPH = re.compile(r"\n\s*\n|\n\s*(?:[-*]|\d+\.)\s")
SENTENCE = re.compile(r"(?<=[.;:!?])\s+")


def docstrings(tree: ast.AST) -> Iterator[str]:
    """The texts that stand for people: of modules, classes, functions, and behind constants and fields."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield text


def long_sentences(tree: ast.AST) -> Iterator[str]:
    for text in docstrings(tree):
        for paragraph in PARAGRAPH.split(cleandoc(text)):
            if any(line.startswith("    ") for line in paragraph.splitlines()):
                continue  # a table or an example
            for sentence in SENTENCE.split(" ".join(paragraph.split())):
                if len([word for word in sentence.split() if word != "→"]) > LONGEST_SENTENCE:
                    yield sentence


REPHRASED = re.compile(r"(?:What|Who|Whoever|Whatever)\b")
"""First words of sentences that have to be turned round to be understood."""

DESCRIBED = {
    "contacts/wire.py": "What belongs to the contact itself, wherever it is made.",
    "emails/event_data.py": "What is not known, or not there, is left out; nothing is null.",
    "inboxes/received_mail.py": "What was found out about a received email, as the API shows it.",
    "templates/wire.py": "What is not named stays; null takes away.",
    "webhooks/wire.py": "What was sent.",
}
"""Docstrings of wire shapes: `/openapi.json` shows them as descriptions, so they stay as they are."""


def rephrased(tree: ast.AST) -> Iterator[str]:
    """Yield the first lines of docstrings that begin with one of these words."""
    for text in docstrings(tree):
        if REPHRASED.match(text.lstrip()):
            yield text.strip().splitlines()[0]


def rephrased_in_source() -> Iterator[tuple[str, str]]:
    for path in sorted(SOURCE.rglob("*.py")):
        for line in rephrased(tree_of(path)):
            yield str(path.relative_to(SOURCE)), line


def test_docstrings_begin_with_what_the_caller_gets() -> None:
    found = [f"{path}: {line}" for path, line in rephrased_in_source() if DESCRIBED.get(path) != line]
    assert found == [], "begin a function with an imperative (Return …), a class or a value with what it is"


def test_a_docstring_that_begins_with_what_is_found() -> None:
    assert list(rephrased(ast.parse('"""What is sent."""'))) == ["What is sent."]
    assert list(rephrased(ast.parse('def f():\n    """Who asks.\n\n    More.\n    """'))) == ["Who asks."]
    assert list(rephrased(ast.parse('X = 1\n"""Whatever it is."""'))) == ["Whatever it is."]
    assert list(rephrased(ast.parse('def f():\n    """Return what is sent."""'))) == []
    assert list(rephrased(ast.parse('class A:\n    """Whole days."""'))) == []


def test_every_description_of_a_shape_is_still_there() -> None:
    assert DESCRIBED.items() <= set(rephrased_in_source())


def test_no_sentence_of_a_docstring_is_long() -> None:
    found = [
        f"{path.relative_to(SOURCE)}: {sentence}"
        for path in sorted(SOURCE.rglob("*.py"))
        for sentence in long_sentences(tree_of(path))
    ]
    assert found == [], f"say it in sentences of at most {LONGEST_SENTENCE} words"


def test_a_long_sentence_is_found() -> None:
    long, short = "word " * 31, "word " * 29 + "word. And another."
    assert list(long_sentences(ast.parse(f'"""{long}"""'))) == [long.strip()]
    assert list(long_sentences(ast.parse(f'X = 1\n"""{short}"""\n\ndef f():\n    """A.\n\n    {long}"""')))
    assert list(long_sentences(ast.parse(f'X = 1\n"""{short}"""'))) == []


def test_these_lints_find_violations() -> None:
    assert is_participle("Asked")
    assert is_participle("_Taken")
    assert is_participle("Sending")
    assert not is_participle("AskedName")
    assert not is_participle("Setting")
    assert list(refused_parameters(ast.parse("def f(db, *, most): ..."))) == ["f(most): say limit"]


def test_every_exception_is_needed() -> None:
    names = {name for name, _ in classes()}
    assert names >= NOUNS | SHAPES


VERBS = Path(__file__).with_name("docstring_verbs.txt")
"""Imperatives with which docstrings of functions begin, one a line, sorted."""

KIT = ROOT / "tests" / "kit"

Function = ast.FunctionDef | ast.AsyncFunctionDef


def verbs() -> frozenset[str]:
    return frozenset(VERBS.read_text().split())


def is_property(node: Function) -> bool:
    names = [ast.unparse(decorator).rpartition(".")[2] for decorator in node.decorator_list]
    return any(name in {"property", "cached_property", "setter"} for name in names)


def first_words(node: Function) -> list[str]:
    """Return the words of the docstring; "Return it." where there is none, as that is right."""
    return (ast.get_docstring(node) or "Return it.").split()


def is_help_of_an_option(node: Function) -> bool:
    """Return whether the docstring is the `--help` of a command that does nothing without an option."""
    return node.name == "command" and " ".join(first_words(node)).startswith("With --")


def not_imperative(tree: ast.AST, allowed: frozenset[str]) -> Iterator[str]:
    """Yield the functions whose docstrings begin with none of these verbs, or with one as a noun."""
    for node in ast.walk(tree):
        if not isinstance(node, Function) or is_property(node) or is_help_of_an_option(node):
            continue
        words = first_words(node)
        if words[0].rstrip(",;:.") not in allowed or words[1:2] == ["of"]:
            yield f"{node.name}: {' '.join(words[:6])}"


def test_docstrings_of_functions_begin_with_an_imperative() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {offence}"
        for path in sorted([*SOURCE.rglob("*.py"), *KIT.rglob("*.py")])
        for offence in not_imperative(tree_of(path), verbs())
    ]
    assert found == [], (
        "say what the caller gets or what is done: Return the …, Return whether …, Yield …, Raise … where …; "
        f"a verb that is missing belongs into {VERBS.name}"
    )


def test_a_docstring_without_an_imperative_is_found() -> None:
    def faults(text: str) -> list[str]:
        return list(not_imperative(ast.parse(text), frozenset({"Close", "Return", "Set"})))

    assert faults('def f():\n    """The name of it."""') == ["f: The name of it."]
    assert faults('async def f():\n    """Whether it is."""') == ["f: Whether it is."]
    assert faults('class A:\n    def f(self):\n        """Set of names."""') == ["f: Set of names."]
    assert (
        faults('class A:\n    """A name."""\n\n    @property\n    def f(self):\n        """The name."""')
        == []
    )
    assert (
        faults('def f():\n    """Return it."""\n\ndef g(): ...\n\ndef h():\n    """Close, and wait."""') == []
    )


def test_the_verbs_are_sorted_and_used() -> None:
    words = VERBS.read_text().split()
    assert words == sorted(set(words))
    used = {
        first_words(node)[0].rstrip(",;:.")
        for path in [*SOURCE.rglob("*.py"), *KIT.rglob("*.py")]
        for node in nodes_of(path)
        if isinstance(node, Function)
    }
    assert set(words) - used == set(), "no docstring begins with these any more: take them out"


HANDLERS = {
    "get": "show",
    "retrieve": "show",
    "list": "index",
    "delete": "remove",
    "add": "create",
}
"""Words that a handler of a whole resource does not have, and the one that it has."""


def test_handlers_of_resources_have_five_names() -> None:
    """docs/architecture.md 3: index, show, create, update, remove; a part has its name behind the word."""
    wrong = [
        f"{path.relative_to(SOURCE)}: {node.name} is called {HANDLERS[node.name]}"
        for path in SOURCE.rglob("routes.py")
        for node in nodes_of(path)
        if isinstance(node, ast.AsyncFunctionDef) and node.name in HANDLERS
    ]
    assert wrong == []


def test_handlers_show_parts_and_do_not_retrieve_them() -> None:
    wrong = [
        f"{path.relative_to(SOURCE)}: {node.name}"
        for path in SOURCE.rglob("routes.py")
        for node in nodes_of(path)
        if isinstance(node, ast.AsyncFunctionDef) and re.match(r"(?:get|retrieve|delete)_", node.name)
    ]
    assert wrong == [], "show_… and remove_…"
