"""Says on standard error what goes on: on a terminal one line that changes, else a line each step."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from types import TracebackType

BEAT = 0.2
CLEAR = "\r\x1b[K"
MEGABYTE = 1_000_000


class Progress:
    """What is being done, for how long, and how much lies in `folder` by now."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._began = time.monotonic()
        self._is_terminal = sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._doing = ""
        self._ended = threading.Event()
        self._painter = threading.Thread(target=self._paint, daemon=True)

    def __enter__(self) -> Progress:
        if self._is_terminal:
            self._painter.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, at: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._is_terminal:
            self._painter.join()
            print(CLEAR, end="", file=sys.stderr, flush=True)

    def step(self, doing: str) -> None:
        """Say what is being done from now on."""
        self._doing = doing
        if not self._is_terminal:
            say(doing)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def _paint(self) -> None:
        while not self._ended.wait(BEAT):
            line = f"pillarbox: {self._doing} … {size_of(self._folder) // MEGABYTE} MB, {self.seconds:.0f} s"
            print(CLEAR + line, end="", file=sys.stderr, flush=True)


def size_of(folder: Path) -> int:
    """How many octets the files of a folder hold; a file that has several names counts once."""
    sizes: dict[int, int] = {}
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                found = os.lstat(os.path.join(place, name))
            except OSError:
                continue
            sizes[found.st_ino] = found.st_size
    return sum(sizes.values())


def say(sentence: str) -> None:
    print(f"pillarbox: {sentence}", file=sys.stderr, flush=True)


def complain(sentence: str) -> int:
    """Say it; the exit status."""
    say(sentence)
    return 1
