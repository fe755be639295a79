"""Makes the virtual environment that the scripts run in, and prints the path of its Python.

- The pins of requirements/{runtime,dev}.txt are installed with their hashes, and only when they changed:
  a second run needs no network.
- uv installs them, fetched by pip for the moment; plain pip does where uv cannot (docs/decisions/0004).
- The environment is `.venv` in the checkout. Where that is not ours to write, one under the user's cache
  folder is used.
- A file lock lets two scripts start at the same time.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from interpreters import fastest
from package_index import pip_settings, uv_environment, uv_options
from progress import MEGABYTE, Progress, complain, say, size_of

SETS = {"runtime": ("runtime",), "dev": ("dev", "runtime")}
"""What a set contains: the dev pins include the runtime pins."""

STAMP = ".installed-{}"
SOURCE_PATH = "pillarbox-source.pth"

PIP_FILLS_OTHERS = (22, 3)
"""The version from which on pip knows --python."""

PIP_INSTALL = (
    *("install", "-qq", "--disable-pip-version-check", "--no-input", "--no-warn-script-location"),
    *("--no-deps", "--require-hashes"),
)
PIP_ENVIRONMENT = {**os.environ, "PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0"}
"""Where packages go is ours to say."""

LOAD = "from pillarbox import cli, worker; cli.program(); worker.http_protocol()"
STOPPED = 129
"""One less than the status of a program that Ctrl-C ended."""


def main(root: Path, wanted: str) -> int:
    if wanted not in SETS:
        return complain(f"unknown set of packages {wanted!r}; the sets are {', '.join(SETS)}")
    place = place_for(root, wanted)
    if not is_complete(place, root, wanted):
        with locked(root / "requirements"):
            if not is_complete(place, root, wanted):
                status = install(place, root, wanted)
                if status:
                    return status
    print(python_of(place))
    return 0


def place_for(root: Path, wanted: str) -> Path:
    """Where the environment is or will be."""
    inside = root / ".venv"
    if is_complete(inside, root, wanted) or writable(inside if inside.exists() else root):
        return inside
    mark = hashlib.sha256(str(root).encode()).hexdigest()[:16]
    return cache_folder() / "pillarbox" / mark / "venv"


def cache_folder() -> Path:
    """The user's cache folder; without a usable home, a private folder for temporary files."""
    for text in (os.environ.get("XDG_CACHE_HOME"), os.path.expanduser("~/.cache")):
        if text and os.path.isabs(text):
            with contextlib.suppress(OSError):
                Path(text).mkdir(parents=True, exist_ok=True)
                if writable(Path(text)):
                    return Path(text)
    folder = Path(tempfile.gettempdir()) / f"pillarbox-cache-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise SystemExit(complain(f"{folder} belongs to somebody else"))
    return folder


def writable(path: Path) -> bool:
    return os.access(path, os.W_OK | os.X_OK)


def python_of(place: Path) -> Path:
    return place / "bin" / "python"


def stamp_text(root: Path, name: str) -> str:
    """What the stamp says when the pins of that name are installed for this checkout."""
    pins = (root / "requirements" / f"{name}.txt").read_bytes()
    return f"{hashlib.sha256(pins).hexdigest()} {root / 'src'}\n"


def is_complete(place: Path, root: Path, wanted: str) -> bool:
    try:
        stamp = (place / STAMP.format(wanted)).read_text(encoding="utf-8")
    except OSError:
        return False
    return stamp == stamp_text(root, wanted) and os.access(python_of(place), os.X_OK)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder that everybody can read; nothing is written for it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def install(place: Path, root: Path, wanted: str) -> int:
    """Make the environment new if it cannot run, install the pins, leave the stamps; the exit status."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if not runs(python_of(place)):
        shutil.rmtree(place, ignore_errors=True)
        make_environment(place)
    for name in SETS[wanted]:
        (place / STAMP.format(name)).unlink(missing_ok=True)
    pins = root / "requirements" / f"{wanted}.txt"
    say(f"installing {count(pins)} packages into {place} (once)")
    compiling = compile_sources(python_of(place), root / "src")
    with scratch_folder(place) as scratch, Progress(place) as progress:
        status = fill(place, pins, scratch, progress)
        compiling.wait()
        if status == 0:
            (site_packages(place) / SOURCE_PATH).write_text(f"{root / 'src'}\n", encoding="utf-8")
            load(python_of(place))
    if status:
        return complain("the packages could not be installed; the lines above say why")
    for name in SETS[wanted]:
        (place / STAMP.format(name)).write_text(stamp_text(root, name), encoding="utf-8")
    say(f"installed {size_of(place) // MEGABYTE} MB in {progress.seconds:.0f} s")
    return 0


def make_environment(place: Path) -> None:
    """An empty environment on the fastest interpreter that is there."""
    found = fastest(os.environ)
    made = "import sys, venv; venv.create(sys.argv[1], with_pip=False, symlinks=True)"
    if found is None or not quietly([found.path, "-I", "-c", made, str(place)], dict(os.environ)):
        venv.create(place, with_pip=False, symlinks=True)


def fill(place: Path, pins: Path, scratch: Path, progress: Progress) -> int:
    """Install the pins with uv, which takes seconds where pip takes most of a minute; else with pip.
    The hashes are checked either way."""
    progress.step("fetching the installer")
    pip = pip_command(scratch)
    uv = scratch / "uv" / "bin" / "uv"
    sources = ("--only-binary", ":all:", "--no-compile", "--target", str(scratch / "uv"))
    uv_pins = pins.with_name("uv.txt")
    quietly([*pip, *PIP_INSTALL, *sources, "-r", str(uv_pins)], PIP_ENVIRONMENT)
    progress.step("fetching the packages")
    if uv.exists() and with_uv(uv, pip, place, pins, scratch):
        return 0
    progress.step("fetching the packages with pip")
    command = [*pip, "--python", str(python_of(place)), *PIP_INSTALL, "-r", str(pins)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=PIP_ENVIRONMENT)
    if done.returncode:
        print(done.stdout.decode(errors="replace").rstrip(), file=sys.stderr, flush=True)
    return done.returncode


def with_uv(uv: Path, pip: list[str], place: Path, pins: Path, scratch: Path) -> bool:
    """True if uv installed the pins from where pip would take them."""
    listed = subprocess.run([*pip, "config", "list"], capture_output=True, text=True, env=PIP_ENVIRONMENT)
    settings = pip_settings(listed.stdout.splitlines())
    # The cache lies beside the packages, so that they are linked and not copied.
    where = ("--python", str(python_of(place)), "--cache-dir", str(scratch / "cache"))
    command = [str(uv), "pip", "install", "--quiet", "--no-deps", "--require-hashes", *uv_options(settings)]
    return quietly([*command, *where, "-r", str(pins)], uv_environment(settings))


def pip_command(scratch: Path) -> list[str]:
    """A pip that can fill another environment: this Python's, else one that lasts as long as the scratch."""
    own = [sys.executable, "-P", "-m", "pip"]
    told = subprocess.run([*own, "--version"], capture_output=True, text=True)
    version = re.match(r"pip (\d+)\.(\d+)", told.stdout)
    if version and tuple(map(int, version.groups())) >= PIP_FILLS_OTHERS:
        return own
    try:
        venv.create(scratch / "pip", with_pip=True, symlinks=True)
    except (ImportError, subprocess.CalledProcessError):
        raise SystemExit(complain("Python's pip is needed: install python3-pip or python3-venv")) from None
    return [str(python_of(scratch / "pip")), "-P", "-m", "pip"]


@contextlib.contextmanager
def scratch_folder(place: Path) -> Iterator[Path]:
    """A folder on the file system of the environment, gone afterwards."""
    scratch = place / "installing"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def compile_sources(python: Path, folder: Path) -> subprocess.Popen[bytes]:
    """So that the first start need not do it. Where we may not write, every start does."""
    command = [str(python), "-I", "-m", "compileall", "-qq", str(folder)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def load(python: Path) -> None:
    """Load the program once, so that the packages which it uses are compiled, and no others."""
    quietly([str(python), "-I", "-c", LOAD], dict(os.environ))


def quietly(command: list[str], environment: Mapping[str, str]) -> bool:
    """True if the command succeeds."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    return done.returncode == 0


def runs(python: Path) -> bool:
    try:
        return quietly([str(python), "-I", "-c", ""], dict(os.environ))
    except OSError:
        return False


def count(pins: Path) -> int:
    """How many packages a file of pins names; some are for other systems."""
    return sum("==" in line for line in pins.read_text(encoding="utf-8").splitlines())


def site_packages(place: Path) -> Path:
    question = "import sysconfig; print(sysconfig.get_path('purelib'))"
    answer = subprocess.run(
        [str(python_of(place)), "-I", "-c", question], capture_output=True, text=True, check=True
    )
    return Path(answer.stdout.strip())


if __name__ == "__main__":
    try:
        status = main(Path(sys.argv[1]), sys.argv[2])
    except KeyboardInterrupt:
        status = STOPPED + complain("stopped; the next start goes on with it")
    except (OSError, subprocess.CalledProcessError) as problem:
        status = complain(f"the packages could not be installed: {problem}")
    sys.exit(status)
