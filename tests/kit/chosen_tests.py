"""Which tests run: those marked `slow` and `sweep` not always.

- `slow`: takes minutes. It runs with `--slow`, or with `--slow-of` its file.
- `sweep`: takes seconds to a minute, and seldom finds what no other test finds: processes that die at many
  points, every screen in a browser, every command. It runs in CI (`--sweeps`), with `--slow`, and wherever a
  path is named; a run of everything without options leaves it out.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from kit.file_order import file_of


class Chosen(NamedTuple):
    """What the command line asks for. `slow_of`: files whose slow tests run."""

    slow: bool
    sweeps: bool
    slow_of: frozenset[str]

    @classmethod
    def of(cls, config: pytest.Config) -> Chosen:
        """Return what this session of pytest was asked for."""
        is_slow = bool(config.getoption("--slow"))
        everything = {str(config.rootpath), str(config.rootpath / "tests")}
        # A worker of a run gets the paths of the run as arguments, whether somebody named them or not.
        named = {str(config.invocation_params.dir / path) for path in config.args}
        return cls(
            slow=is_slow,
            sweeps=is_slow or bool(named - everything) or bool(config.getoption("--sweeps")),
            slow_of=frozenset(config.getoption("--slow-of")),
        )

    def has_slow(self, nodeid: str) -> bool:
        """Return whether the slow tests of a test's file run."""
        return self.slow or file_of(nodeid) in self.slow_of

    def missing_option(self, item: pytest.Item) -> str | None:
        """Return the option without which the test does not run; None where it runs."""
        if "slow" in item.keywords:
            return None if self.has_slow(item.nodeid) else "--slow"
        if "sweep" in item.keywords:
            return None if self.sweeps else "--sweeps"
        return None
