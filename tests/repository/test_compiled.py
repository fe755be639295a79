"""Compiled modules: used while their sources are unchanged, and the same in all that they answer."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from pillarbox.kernel.process import compiled
from pillarbox.kernel.process.compiled import CompiledFinder, digest_of, finder
from repository.test_bootstrap import script_module
from repository.test_scripts import ROOT

compile_modules = script_module("compile_modules")
SOURCES = ("pillarbox/mail/message/parse.py", "pillarbox/kernel/ids.py")


def program(*arguments: str, modules: Path, source: Path = ROOT / "src", **variables: str) -> str:
    """What a Python prints that finds the program in `source` and compiled modules in `modules`."""
    clean = {name: text for name, text in os.environ.items() if name != compiled.VARIABLE}
    paths = os.pathsep.join(map(str, (modules, source, ROOT / "tests")))
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**clean, **variables, "PYTHONPATH": paths, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def made_of(root: Path, *sources: str, suffix: str = EXTENSION_SUFFIXES[0]) -> CompiledFinder:
    """A build of these sources that has one module."""
    digest = digest_of(root, sources)
    assert digest is not None
    return CompiledFinder(root, suffix, ["pillarbox.mail.message.parse"], sources, digest)


def test_a_compiled_module_is_found_while_all_sources_are_those_it_was_made_from() -> None:
    spec = made_of(ROOT / "src", *SOURCES).find_spec("pillarbox.mail.message.parse")
    assert spec is not None
    assert str(spec.origin).endswith(EXTENSION_SUFFIXES[0])
    assert made_of(ROOT / "src", *SOURCES).find_spec("pillarbox.mail.message.compose") is None


@pytest.mark.parametrize("source", SOURCES)
def test_one_source_that_was_edited_sends_all_modules_back_to_python(source: str, tmp_path: Path) -> None:
    for name in SOURCES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / "src" / name, tmp_path / name)
    assert digest_of(tmp_path, SOURCES) == digest_of(ROOT / "src", SOURCES)
    (tmp_path / source).write_bytes((tmp_path / source).read_bytes() + b"\n")
    found = made_of(ROOT / "src", *SOURCES)
    found.digest = str(digest_of(tmp_path, SOURCES))
    assert found.find_spec("pillarbox.mail.message.parse") is None


def test_a_source_that_is_gone_or_another_python_leaves_them_unused() -> None:
    assert digest_of(ROOT / "src", ["pillarbox/not_there.py"]) is None
    assert not made_of(ROOT / "src", *SOURCES, suffix=".cpython-39-vax.so").is_current()


def package(folder: Path, text: str) -> Path:
    place = folder / compiled.PACKAGE
    place.mkdir()
    (place / "__init__.py").write_text(text)
    return folder


USED = "from pillarbox.kernel.process import compiled; print(compiled.used())"


def test_without_them_with_broken_ones_and_switched_off_the_program_runs_from_its_sources(
    tmp_path: Path,
) -> None:
    broken = package(tmp_path, "this is no Python\n")
    assert program("-c", USED, modules=broken) == "no modules are compiled\n"
    (broken / compiled.PACKAGE / "__init__.py").write_text("print('never imported')\n")
    assert program("-c", USED, modules=broken, COMPILED_PILLARBOX="off") == "no modules are compiled\n"
    assert finder({compiled.VARIABLE: "off"}) is None


def test_those_of_other_sources_are_not_used(tmp_path: Path) -> None:
    old = f"SUFFIX={EXTENSION_SUFFIXES[0]!r}; MODULES=('pillarbox.mail.message.parse',)\n"
    stale = package(tmp_path, old + f"SOURCES={SOURCES!r}; DIGEST='0'\n")
    asked = f"import pillarbox.mail.message.parse as m; print(m.__file__[-3:]); {USED}"
    said = program("-c", asked, modules=stale)
    assert said.splitlines() == [".py", "compiled modules are of other sources and not used"]


@pytest.mark.parametrize("module", compile_modules.listed())
def test_a_listed_module_can_be_compiled(module: str) -> None:
    """No coroutine, and no Struct, whose annotations msgspec would not understand any more."""
    path = ROOT / "src" / compile_modules.file_of(ROOT, module)
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        assert not isinstance(node, ast.AsyncFunctionDef), f"{module}: {node.name} is a coroutine"
        if isinstance(node, ast.ClassDef):
            assert "Struct" not in {ast.unparse(base).rpartition(".")[2] for base in node.bases}, node.name


def test_without_a_compiler_there_is_one_line_and_nothing_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(compile_modules.sysconfig, "get_path", lambda _: str(tmp_path))
    assert compile_modules.main(ROOT, []) == 1
    said = capfd.readouterr().err.splitlines()
    assert len(said) == 1, said
    assert said[0].endswith("the program runs from its sources: there is no C compiler (gcc)")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with compiled modules of this tree."""
    folder = tmp_path_factory.mktemp("compiled")
    here = Path.cwd()
    try:
        compile_modules.tools()
        compile_modules.build(ROOT, folder)
    except compile_modules.NotCompiledError as reason:
        if "missing" in str(reason) or "there is no" in str(reason):
            pytest.skip(str(reason))
        raise
    finally:
        os.chdir(here)
    yield folder


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_compiled_and_not_the_same_is_read_and_written(built: Path) -> None:
    ours = program("-m", "kit.mail_answers", modules=built).splitlines()
    pure = program("-m", "kit.mail_answers", modules=built, COMPILED_PILLARBOX="off").splitlines()
    assert (ours[0], pure[0]) == (
        f"{len(compile_modules.listed())} modules are compiled",
        "no modules are compiled",
    )
    assert len(pure) > 1000
    assert ours[1:] == pure[1:]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_edit_in_a_checkout_is_what_runs(built: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    asked = (
        "from pillarbox.mail.message import compose; print(getattr(compose, 'EDITED', compose.__file__[-3:]))"
    )
    assert program("-c", asked, modules=built, source=tmp_path / "src") == ".so\n"
    edited = tmp_path / "src/pillarbox/mail/message/compose.py"
    edited.write_text(edited.read_text() + "EDITED = 'edited'\n")
    assert program("-c", asked, modules=built, source=tmp_path / "src") == "edited\n"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_wheel_brings_them(built: Path, tmp_path: Path) -> None:
    pure = tmp_path / "pillarbox-1-py3-none-any.whl"
    with zipfile.ZipFile(pure, "w") as file:
        for path in (ROOT / "src").rglob("*.py"):
            file.write(path, path.relative_to(ROOT / "src"))
        about = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        file.writestr("pillarbox-1.dist-info/WHEEL", about)
        file.writestr("pillarbox-1.dist-info/RECORD", "")
    wheel = compile_modules.with_compiled(pure, built / compiled.PACKAGE)
    assert "py3-none-any" not in wheel.name
    with zipfile.ZipFile(wheel) as file:
        file.extractall(tmp_path / "installed")
        assert b"Root-Is-Purelib: false" in file.read("pillarbox-1.dist-info/WHEEL")
        record = file.read("pillarbox-1.dist-info/RECORD").decode().splitlines()
        assert sorted(line.split(",")[0] for line in record) == sorted(file.namelist())
    installed = tmp_path / "installed"
    said = program("-c", USED, modules=installed, source=installed)
    assert said == f"{len(compile_modules.listed())} modules are compiled\n"
