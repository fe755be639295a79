"""The official Node SDK: every method once, against the real program (`node_sdk.mjs` calls them)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kit.node_packages import packages, run_node
from kit.official_clients import FROM, Place, client_server

if TYPE_CHECKING:
    from conftest import Databases

PROGRAM = Path(__file__).with_name("node_sdk.mjs")


@pytest.fixture(scope="module")
def place(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    packages("resend_sdk")
    url = databases.fresh()
    with client_server(url, tmp_path_factory.mktemp("node-sdk")) as running:
        yield running
    databases.drop(url)


@pytest.fixture(scope="module")
def said(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Any:
    home = tmp_path_factory.mktemp("home")
    return json.loads(run_node("resend_sdk", PROGRAM, home, place.variables(home)))


def test_every_method_of_the_sdk_gets_an_answer(said: Any) -> None:
    assert said["failures"] + said["missing"] == []
    assert len(said["answers"]) > 120


def test_its_answers_are_what_was_asked_for(said: Any) -> None:
    answers = said["answers"]
    assert answers["emails.get"]["from"] == FROM
    assert answers["emails.receiving.get"]["subject"] == "Which berth?"
    assert answers["webhooks.verify"] == {"type": "email.sent"}
