"""How thorough the sweeps of this folder are."""

from __future__ import annotations

import pytest


@pytest.fixture
def many(request: pytest.FixtureRequest) -> int:
    """How many random questions a sweep asks: few in the usual run, many with `--slow`."""
    return 5000 if request.config.getoption("--slow") else 200
