"""The recipes of the guide as starting points: each graph as it stands on the guide's page of automations."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from pillarbox.dashboard.docs import guide
from pillarbox.kernel.process.offload import in_thread

PAGE: Final = "automations"
_SECTION: Final = re.compile(r"^## (.+)$", re.MULTILINE)
_GRAPH: Final = re.compile(r"^cat > (\S+)\.json <<END\n(.*?)^END$", re.MULTILINE | re.DOTALL)
_TEMPLATE: Final = re.compile(r'^sh template\.sh (\S+) "([^"]+)" "([^"]+)"(?: (.+))?$', re.MULTILINE)
_SEGMENT: Final = re.compile(r'\$([A-Z]+)(?=")')
_NAME_OF_SEGMENT: Final = re.compile(r'^([A-Z]+)=\$\(curl \$API/segments .*"name": "([^"]+)"', re.MULTILINE)
_VARIABLE: Final = re.compile(r'"key": "([A-Z]+)", "type": "(string|number)"')


class RecipeTemplate(NamedTuple):
    """A template that a recipe sends."""

    alias: str
    subject: str
    html: str
    variables: Sequence[Mapping[str, str]]


class Recipe(NamedTuple):
    """A graph of the guide. `text` is its JSON; `$NAME` stands in place of the segment."""

    name: str
    title: str
    lead: str
    text: str
    templates: Sequence[RecipeTemplate]
    segment: str | None
    property: str | None

    def graph(self, segment_id: str) -> dict[str, Any]:
        """Return name, steps and connections; `segment_id` is the segment that it adds contacts to."""
        found: dict[str, Any] = json.loads(_SEGMENT.sub(segment_id, self.text))
        return found


@cache
def recipes() -> Mapping[str, Recipe]:
    """Return the recipes by their names, in the order of the guide."""
    source = guide.sources()[PAGE]
    starts = [*_SECTION.finditer(source)]
    found = {}
    for start, after in zip(starts, [*starts[1:], None], strict=True):
        section = source[start.end() : after.start() if after else None]
        graph = _GRAPH.search(section)
        if graph is not None:
            found[graph[1]] = _recipe(start[1].strip(), section, graph[1], graph[2])
    return found


def _recipe(title: str, section: str, name: str, text: str) -> Recipe:
    declared = dict(re.findall(r"^([A-Z]+)='(.+)'$", section, re.MULTILINE))
    templates = [
        RecipeTemplate(alias, subject, html, _variables(rest, declared))
        for alias, subject, html, rest in _TEMPLATE.findall(section)
    ]
    segments = dict(_NAME_OF_SEGMENT.findall(section))
    placeholder = _SEGMENT.search(text)
    prop = re.search(r'contact-properties .*\n?.*"key": "([a-z_]+)"', section)
    return Recipe(
        name=name,
        title=title,
        lead=" ".join(section.partition("<!--")[0].split()),
        text=text,
        templates=templates,
        segment=segments.get(placeholder[1]) if placeholder else None,
        property=prop[1] if prop else None,
    )


def _variables(rest: str, declared: Mapping[str, str]) -> list[Mapping[str, str]]:
    text = declared.get(rest.strip('"$'), rest)
    return [{"key": key, "type": kind} for key, kind in _VARIABLE.findall(text)]


async def recipe_names() -> list[tuple[str, str]]:
    """Return the names of the recipes with their titles."""
    return [(recipe.name, recipe.title) for recipe in (await in_thread(recipes)).values()]


async def recipe_of(name: str) -> Recipe | None:
    """Return the recipe of a name."""
    return (await in_thread(recipes)).get(name)
