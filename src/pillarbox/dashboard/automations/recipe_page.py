"""Starting points: the recipes of the guide, each with its picture, its needs, and a form that makes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pillarbox.automations.overview import views
from pillarbox.dashboard.automations.automation_list import HERE
from pillarbox.dashboard.automations.graph_svg import DrawnLine, DrawnStep, drawn
from pillarbox.dashboard.automations.recipes import Recipe, recipe_of, recipes
from pillarbox.dashboard.automations.step_words import detail_of
from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.visit import Visit, with_query
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.process.offload import in_thread
from pillarbox.kernel.wire.problems import NotFound, Problem
from pillarbox.people.audit import Act
from pillarbox.people.roles import Right

RECIPES: Final = f"{HERE}/recipes"
NO_SEGMENT: Final = "00000000-0000-0000-0000-000000000000"


@screen(RECIPES, title="recipes.title", words="recipes.words", right=Right.USE, query={"name": str})
async def show(visit: Visit) -> Reply[Html]:
    """Show the recipe that the address names, else the first."""
    name = visit.request.query.text("name") or next(iter(await in_thread(recipes)))
    return await _recipe_page(visit, name)


@act(RECIPES, title="recipes.use", back=RECIPES, records=Act.AUTOMATION_CREATED)
async def use(visit: Visit, form: Form) -> Reply[Html]:
    """Make a disabled automation of a recipe, and what it needs where that is asked for."""
    recipe = await recipe_of(form.get("name"))
    if recipe is None:
        raise NotFound("Recipe")
    try:
        if form.get("makes") == "yes":
            await _make_missing(visit, recipe, form.get("from").strip())
        segment = await _segment(visit, recipe, form.get("segment"))
        visit.acts_on(None, recipe=recipe.name)
        answer = await visit.post("/automations", recipe.graph(segment))
    except Problem as problem:
        return await _recipe_page(
            visit, recipe.name, status=problem.status, problem=problem.message, sender=form.get("from")
        )
    return visit.to(f"{HERE}/{answer['id']}", done="automation_created")


async def _make_missing(visit: Visit, recipe: Recipe, sender: str) -> None:
    """Make and publish the templates that the team does not have, and the property."""
    for template in recipe.templates:
        if await visit.find(f"/templates/{template.alias}", shown=False) is None:
            body: dict[str, Any] = {
                "name": template.subject,
                "alias": template.alias,
                "subject": template.subject,
                "html": template.html,
                "variables": list(template.variables),
                **({"from": sender} if sender else {}),
            }
            await visit.post("/templates", body, recorded=False)
            await visit.post(f"/templates/{template.alias}/publish", recorded=False)
    if recipe.property is not None:
        listed = (await visit.get("/contact-properties", shown=False, limit=100))["data"]
        if recipe.property not in {entry["key"] for entry in listed}:
            await visit.post(
                "/contact-properties", {"key": recipe.property, "type": "string"}, recorded=False
            )


async def _segment(visit: Visit, recipe: Recipe, chosen: str) -> str:
    """Return the segment that was chosen, else a new one with the recipe's name for it."""
    if recipe.segment is None:
        return NO_SEGMENT
    if chosen:
        return chosen
    return str((await visit.post("/segments", {"name": recipe.segment}, recorded=False))["id"])


async def _recipe_page(
    visit: Visit, name: str, *, status: int = 200, problem: str | None = None, sender: str | None = None
) -> Reply[Html]:
    recipe = await recipe_of(name)
    if recipe is None:
        raise NotFound("Recipe")
    segments = (await visit.get("/segments", shown=False, limit=100))["data"] if recipe.segment else []
    known = {
        template.alias: await visit.find(f"/templates/{template.alias}", shown=False)
        for template in recipe.templates
    }
    return await visit.draw(
        "automations/recipes.html",
        status=status,
        problem=problem,
        recipe=recipe,
        tabs_of=[
            (with_query(RECIPES, name=entry.name), entry.title, None)
            for entry in (await in_thread(recipes)).values()
        ],
        here=with_query(RECIPES, name=recipe.name),
        picture=_picture(recipe),
        segments={segment["id"]: segment["name"] for segment in segments},
        templates=[_template(entry.alias, entry.subject, known) for entry in recipe.templates],
        is_missing=any(found is None for found in known.values()),
        sender=sender if sender is not None else f"{visit.visitor.team_name} <hello@your-domain.example>",
    )


def _template(alias: str, subject: str, known: Mapping[str, Any]) -> dict[str, Any]:
    found = known[alias]
    state = "missing" if found is None else found["status"]
    return {"alias": alias, "subject": subject, "state": state}


def _picture(recipe: Recipe) -> Any:
    graph = recipe.graph(NO_SEGMENT)
    outline = views.outline_of_json(graph["steps"], graph["connections"])
    names = {NO_SEGMENT: recipe.segment or ""}
    steps = [
        DrawnStep(
            kind=step.type,
            key=step.key,
            detail=detail_of(step, names),
            figures="",
            tone="quiet",
            href="#use",
            title=f"{t('automation.type.' + step.type)}: {step.key}",
        )
        for step in outline.steps
    ]
    return drawn(recipe.title, steps, [DrawnLine(*connection) for connection in outline.connections])
