"""Where the tests of templates run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

Place = tuple[str, Path]


@pytest.fixture(scope="module")
def place(databases: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A database and a folder for tests that each have teams of their own."""
    url = databases.fresh()
    yield url, tmp_path_factory.mktemp("templates")
    databases.drop(url)
