"""Every finding that these tests bring about has a German text."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from contextvars import copy_context
from importlib import import_module
from typing import Any

import pytest

import pillarbox.doctor
from pillarbox.dashboard.installation.check_sentences import said
from pillarbox.dashboard.texts import use_language
from pillarbox.dashboard.texts.languages import GERMAN
from pillarbox.doctor.checks import Check, Level
from pillarbox.doctor.machine import RULES

COMMAND_ALONE = ("record.", "domain.", "tracking_host")
"""Checks of a domain that the command was asked for; the dashboard shows them in no list."""

VALUES = frozenset(value for rule in RULES for value in rule.allowed)
"""Values of settings, which no language translates."""


def untranslated(check: Check) -> list[str]:
    """Return the texts of a check that a German page would show in English."""
    if check.name.startswith(COMMAND_ALONE):
        return []
    texts = [check.title, check.found, *([check.step] if check.step and check.level is not Level.OK else [])]

    def in_german() -> list[str]:
        use_language(GERMAN, None)
        return [text for text in texts if said(check.name, text).language and text not in VALUES]

    return copy_context().run(in_german)


@pytest.fixture(autouse=True)
def _findings_are_known_in_german(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    made: list[Check] = []

    def noted(*given: Any, **named: Any) -> Check:
        made.append(Check(*given, **named))
        return made[-1]

    for module in pkgutil.iter_modules(pillarbox.doctor.__path__, "pillarbox.doctor."):
        if module.name != "pillarbox.doctor.checks" and hasattr(import_module(module.name), "Check"):
            monkeypatch.setattr(f"{module.name}.Check", noted)
    yield
    assert [(check.name, texts) for check in made if (texts := untranslated(check))] == []
