"""Compiles modules of the program to C with mypyc (docs/decisions/0119).

What is made is the package `pillarbox_compiled`: a library, a small extension module for each module, and
the names and the digest of the sources, by which `pillarbox.kernel.process.compiled` knows whether it may be
used. It is put in place whole, after all of it was loaded once; a build that fails changes nothing.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from progress import complain, say

LISTED = Path(__file__).with_name("compiled_modules.txt")
PACKAGE = "pillarbox_compiled"
SUFFIX = str(sysconfig.get_config_var("EXT_SUFFIX"))
OPTIMISED = ("-O3", "-g0", "-DNDEBUG", "-w")
LOAD = "from pillarbox import cli, worker; cli.program(); worker.http_protocol()"
LINES = 8
"""So many of the last lines of a compiler that failed are shown."""


class NotCompiledError(Exception):
    """Why there are no compiled modules."""


def main(root: Path, wanted: Sequence[str]) -> int:
    place = Path(sysconfig.get_path("platlib")) / PACKAGE
    try:
        if wanted == ["--remove"]:
            shutil.rmtree(place, ignore_errors=True)
        elif not wanted:
            with tempfile.TemporaryDirectory(prefix=f"{PACKAGE}-", dir=place.parent) as folder:
                made = build(root, Path(folder))
                shutil.rmtree(place, ignore_errors=True)
                made.rename(place)
            say(f"{len(listed())} modules are compiled and used while their sources stay as they are")
        elif len(wanted) == 2 and wanted[0] == "--wheel":
            with tempfile.TemporaryDirectory(prefix=f"{PACKAGE}-") as folder:
                print(with_compiled(Path(wanted[1]), build(root, Path(folder))))
        else:
            return complain("usage: script/compile [--remove | --wheel WHEEL]")
    except (NotCompiledError, OSError) as reason:
        return complain(f"nothing is compiled, the program runs from its sources: {reason}")
    return 0


def listed() -> list[str]:
    """The modules that are compiled."""
    lines = LISTED.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def build(root: Path, folder: Path) -> Path:
    """The package, complete and loaded once, in this folder."""
    compiler, linker = tools()
    modules = listed()
    made = folder / PACKAGE
    made.mkdir()
    os.chdir(root / "src")
    say(f"compiling {len(modules)} modules, which takes a minute")
    c_files = translated(root, modules, folder)
    import mypyc.build

    options = [
        *OPTIMISED,
        f"-I{sysconfig.get_path('include')}",
        f"-I{mypyc.build.include_dir()}",
        f"-I{folder}",
    ]
    work = [
        subprocess.Popen(
            [*compiler, *options, *linker, *files, "-o", str(made / f"{name}{SUFFIX}")],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for name, files in c_files
    ]
    said = [process.communicate()[0].decode(errors="replace") for process in work]
    for process, text in zip(work, said, strict=True):
        if process.returncode:
            raise NotCompiledError("\n".join(["the C compiler failed", *text.splitlines()[-LINES:]]))
    (made / "__init__.py").write_text(manifest(root, modules), encoding="utf-8")
    load(folder, modules)
    return made


def tools() -> tuple[list[str], list[str]]:
    """The compiler, and what makes it write an extension module."""
    named = shlex.split(os.environ.get("CC") or str(sysconfig.get_config_var("CC") or "cc"))
    compiler = named if shutil.which(named[0]) else ["cc"]
    if shutil.which(compiler[0]) is None:
        raise NotCompiledError("there is no C compiler (gcc)")
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        raise NotCompiledError("Python.h is missing (python3-dev)")
    shared = ["-bundle", "-undefined", "dynamic_lookup"] if sys.platform == "darwin" else ["-shared"]
    return compiler, ["-fPIC", *shared]


def translated(root: Path, modules: Sequence[str], folder: Path) -> list[tuple[str, list[str]]]:
    """The C files of each extension module by its name; the first is the library that holds all the code."""
    try:
        from mypyc.build import generate_c_extension_shim, mypyc_build
    except ImportError as missing:
        raise NotCompiledError(
            f"mypyc is missing ({missing}; from Python 3.12 on it needs setuptools)"
        ) from None
    from mypyc.common import shared_lib_name
    from mypyc.options import CompilerOptions

    paths = [f"{module.replace('.', '/')}.py" for module in modules]
    settings = ["--config-file", str(root / "pyproject.toml"), f"--cache-dir={folder / 'cache'}"]
    options = CompilerOptions(target_dir=str(folder), group_name=PACKAGE)
    log = folder / "mypyc.log"
    try:
        with output_into(log):
            _, [(files, _)], _ = mypyc_build([*settings, *paths], options, only_compile_paths=paths)
    except SystemExit as stopped:
        raise NotCompiledError("\n".join(["mypyc refuses it", str(stopped), *last_lines(log)])) from None
    shims = [
        (module, [generate_c_extension_shim(module, module.rpartition(".")[2], str(folder), PACKAGE)])
        for module in modules
    ]
    return [(shared_lib_name(PACKAGE), files), *shims]


@contextlib.contextmanager
def output_into(log: Path) -> Iterator[None]:
    """What this process writes goes to a file: mypyc warns of nothing that matters here."""
    kept = [os.dup(number) for number in (1, 2)]
    with log.open("wb") as file:
        for number in (1, 2):
            os.dup2(file.fileno(), number)
    try:
        yield
    finally:
        sys.stdout.flush()
        for number, descriptor in zip((1, 2), kept, strict=True):
            os.dup2(descriptor, number)
            os.close(descriptor)


def last_lines(log: Path) -> list[str]:
    return log.read_text(encoding="utf-8", errors="replace").splitlines()[-LINES:]


def manifest(root: Path, modules: Sequence[str]) -> str:
    """The package's own module: what it was made from."""
    from pillarbox.kernel.process.compiled import digest_of

    sources = sorted(imported(root, modules))
    names = {
        "SUFFIX": SUFFIX,
        "MODULES": tuple(modules),
        "SOURCES": tuple(sources),
        "DIGEST": digest_of(root / "src", sources),
    }
    lines = (f"{name} = {value!r}\n" for name, value in names.items())
    return '"""Compiled modules of Pillarbox, and what they were made from."""\n\n' + "".join(lines)


def imported(root: Path, modules: Sequence[str]) -> set[str]:
    """The files of these modules and of all modules of the program that they import, directly or not."""
    import grimp

    graph = grimp.build_graph("pillarbox", cache_dir=None)
    found = set(modules).union(*(graph.find_upstream_modules(module) for module in modules))
    return {file_of(root, module) for module in found}


def file_of(root: Path, module: str) -> str:
    path = module.replace(".", "/")
    return f"{path}.py" if (root / "src" / f"{path}.py").exists() else f"{path}/__init__.py"


def load(folder: Path, modules: Sequence[str]) -> None:
    """Load each of them once, or NotCompiledError."""
    # The environment may hold an older build: this one is found first.
    program = (
        f"import importlib, sys; sys.path.insert(0, {str(folder)!r})\n"
        f"{LOAD}\n"
        f"for name in {list(modules)!r}:\n"
        "    file = importlib.import_module(name).__file__\n"
        f"    assert file.startswith({str(folder)!r}), file\n"
    )
    kept = {name: text for name, text in os.environ.items() if name != "COMPILED_PILLARBOX"}
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, env=kept)
    if done.returncode:
        raise NotCompiledError("\n".join(["it does not load", *done.stderr.splitlines()[-LINES:]]))


def with_compiled(pure: Path, made: Path) -> Path:
    """A wheel for this platform beside the pure one, with the package `made` in it."""
    python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    tag = f"{python}-{python}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
    wheel = pure.with_name(pure.name.replace("py3-none-any", tag))
    if wheel == pure:
        raise NotCompiledError(f"{pure.name} is no pure wheel")
    with zipfile.ZipFile(pure) as old, zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as new:
        record = []
        for name, octets in contents(old, made):
            if name.endswith(".dist-info/RECORD"):
                at = name
                continue
            if name.endswith(".dist-info/WHEEL"):
                octets = octets.replace(b"Root-Is-Purelib: true", b"Root-Is-Purelib: false")
                octets = octets.replace(b"Tag: py3-none-any", f"Tag: {tag}".encode())
            new.writestr(name, octets)
            digest = base64.urlsafe_b64encode(hashlib.sha256(octets).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(octets)}\n")
        new.writestr(at, "".join([*record, f"{at},,\n"]))
    return wheel


def contents(old: zipfile.ZipFile, made: Path) -> Iterator[tuple[str, bytes]]:
    """The files of a wheel and those of the package, by their names in a wheel."""
    for name in old.namelist():
        yield name, old.read(name)
    for path in sorted(made.iterdir()):
        if path.is_file():
            yield f"{PACKAGE}/{path.name}", path.read_bytes()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
