"""The longest files first: a worker takes whole files, and a long one at the end keeps the others waiting.

`tests/file_seconds.txt` says how long files took; `script/test --record-seconds` writes it anew. What is not
there is reckoned by its number of tests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

FILE = Path(__file__).parent.parent / "file_seconds.txt"
USUAL_TEST = 0.15
SLOW_FILE = 300.0
LEAST_RECORDED = 1.0


def recorded(with_slow: Sequence[str] = ()) -> dict[str, float]:
    """Return the seconds by the path of a file; those whose slow tests run as well take minutes."""
    lines = FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else []
    found = {path: float(seconds) for seconds, path in (line.split() for line in lines)}
    return {**found, **{path: SLOW_FILE + found.get(path, 0.0) for path in with_slow}}


def longest_first(items: list[pytest.Item], seconds: Mapping[str, float]) -> list[pytest.Item]:
    """Return the tests with the files by their time, and the tests of a file in their order."""
    counts = Counter(file_of(item.nodeid) for item in items)
    times = {path: seconds.get(path, number * USUAL_TEST) for path, number in counts.items()}
    return sorted(items, key=lambda item: (-times[file_of(item.nodeid)], file_of(item.nodeid)))


def file_of(nodeid: str) -> str:
    return nodeid.split("::", 1)[0]


class Recorder:
    """A plugin of pytest that writes the file at the end of a run."""

    def __init__(self) -> None:
        self._seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[file_of(report.nodeid)] += report.duration  # type: ignore[assignment]

    def pytest_sessionfinish(self) -> None:
        long = [(path, took) for path, took in self._seconds.most_common() if took >= LEAST_RECORDED]
        text = "".join(f"{took:.0f} {path}\n" for path, took in long)
        FILE.write_text(text, encoding="utf-8")
