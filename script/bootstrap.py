"""Makes the virtual environment that the scripts run in, and prints the path of its Python.

- The pins of requirements/{runtime,dev}.txt are installed with their hashes, and only when they changed:
  a second run needs no network.
- The environment is `.venv` in the checkout. Where that is not ours to write, one under the user's cache
  folder is used.
- A file lock lets two scripts start at the same time.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path

SETS = {"runtime": ("runtime",), "dev": ("dev", "runtime")}
"""What a set contains: the dev pins include the runtime pins."""

STAMP = ".installed-{}"
SOURCE_PATH = "pillarbox-source.pth"


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
    """Make the environment new if it cannot run, install the pins, leave the stamps."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if not runs(python_of(place)):
        shutil.rmtree(place, ignore_errors=True)
        make(place)
    for name in SETS[wanted]:
        (place / STAMP.format(name)).unlink(missing_ok=True)
    say(f"installing the {wanted} packages into {place} (once)")
    pins = root / "requirements" / f"{wanted}.txt"
    options = ("-qq", "--disable-pip-version-check", "--no-input", "--require-hashes")
    command = [*pip_of(place), "install", *options, "-r", str(pins)]
    status = subprocess.run(command, stdout=sys.stderr).returncode
    if status:
        return complain("the packages could not be installed; the lines above say why")
    (site_packages(place) / SOURCE_PATH).write_text(f"{root / 'src'}\n", encoding="utf-8")
    compile_sources(python_of(place), root / "src")
    for name in SETS[wanted]:
        (place / STAMP.format(name)).write_text(stamp_text(root, name), encoding="utf-8")
    return 0


def compile_sources(python: Path, folder: Path) -> None:
    """So that the first start need not do it. Where we may not write, every start does."""
    subprocess.run([str(python), "-I", "-m", "compileall", "-qq", str(folder)], stdout=sys.stderr)


def runs(python: Path) -> bool:
    try:
        return subprocess.run([str(python), "-I", "-c", ""], capture_output=True).returncode == 0
    except OSError:
        return False


def make(place: Path) -> None:
    """A new environment; without a pip of its own where the system has split ensurepip off."""
    try:
        import ensurepip  # noqa: F401

        venv.create(place, with_pip=True, symlinks=True)
    except (ImportError, subprocess.CalledProcessError):
        shutil.rmtree(place, ignore_errors=True)
        venv.create(place, with_pip=False, symlinks=True)


def pip_of(place: Path) -> list[str]:
    """The environment's pip, else this Python's pip working on the environment."""
    own = [str(python_of(place)), "-m", "pip"]
    if subprocess.run([*own, "--version"], capture_output=True).returncode == 0:
        return own
    return [sys.executable, "-m", "pip", "--python", str(python_of(place))]


def site_packages(place: Path) -> Path:
    question = "import sysconfig; print(sysconfig.get_path('purelib'))"
    answer = subprocess.run(
        [str(python_of(place)), "-I", "-c", question], capture_output=True, text=True, check=True
    )
    return Path(answer.stdout.strip())


def say(sentence: str) -> None:
    print(f"pillarbox: {sentence}", file=sys.stderr, flush=True)


def complain(sentence: str) -> int:
    say(sentence)
    return 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
