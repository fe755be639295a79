"""Where a command writes a long file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

STANDARD: Final = "-"
"""The name of standard output, and of standard input."""


@contextmanager
def output_file(name: str) -> Iterator[IO[str]]:
    """Yield the file of that name: it takes its name when it is whole, and until then stands beside it."""
    if name == STANDARD:
        yield sys.stdout
        return
    part = Path(f"{name}.part")
    try:
        with part.open("w", newline="", encoding="utf-8") as file:
            yield file
        part.replace(name)
    finally:
        part.unlink(missing_ok=True)
