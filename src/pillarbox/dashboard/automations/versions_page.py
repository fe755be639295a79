"""Versions of an automation: each graph that it had, and going back to one."""

from __future__ import annotations

import json

from pillarbox.automations.changes import edition_of
from pillarbox.automations.overview import views
from pillarbox.dashboard.automations.automation_list import HERE
from pillarbox.dashboard.automations.automation_page import ONE, details_of, here_of, version_number
from pillarbox.dashboard.automations.drafts import DraftError, draft_of
from pillarbox.dashboard.automations.editor import EditorState, editor_page
from pillarbox.dashboard.automations.graph_image import picture_on
from pillarbox.dashboard.automations.graph_svg import DrawnLine, DrawnStep
from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply

VERSIONS = f"{ONE}/versions"


@screen(VERSIONS, title="automation.versions", query={"version": int})
async def show(visit: Visit) -> Reply[Html]:
    """Show the versions, and the graph of the one that the address names, else of the newest."""
    return await versions_page(visit)


@act(f"{VERSIONS}/open", title="automation.version.open", back=HERE)
async def open_in_editor(visit: Visit, form: Form) -> Reply[Html]:
    """Show the editor with the graph of an older version. It is stored when it is saved there."""
    automation_id = visit.request.uuid("automation_id")
    heading = await views.heading_of(visit.db, automation_id)
    number = version_number(form.get("version"))
    version = await views.version_of(visit.db, automation_id, number)
    document = {
        "name": heading.name,
        "steps": json.loads(version.steps),
        "connections": json.loads(version.connections),
    }
    try:
        draft = draft_of(document, edition_of(heading.name, heading.status, heading.version))
    except DraftError:
        return await versions_page(visit, problem=t("automation.version.too_large"))
    return await editor_page(visit, EditorState(draft))


async def versions_page(visit: Visit, problem: str | None = None) -> Reply[Html]:
    """Show the screen of versions."""
    automation_id = visit.request.uuid("automation_id")
    heading = await views.heading_of(visit.db, automation_id)
    asked = visit.request.query.text("version")
    number = heading.version if asked is None else version_number(asked)
    version = await views.version_of(visit.db, automation_id, number)
    graph = await views.outlined(version.steps, version.connections)
    details = await details_of(visit, graph)
    steps = [
        DrawnStep(
            kind=step.type,
            key=step.key,
            detail=details[place],
            figures="",
            tone="quiet",
            href="#steps",
            title=step.key,
        )
        for place, step in enumerate(graph.steps)
    ]
    lines = [DrawnLine(*connection) for connection in graph.connections]
    return await visit.draw(
        "automations/versions.html",
        status=200 if problem is None else 422,
        problem=problem,
        automation=heading,
        here=here_of(visit),
        versions=await views.versions_of(visit.db, automation_id),
        version=version,
        picture=await picture_on(
            here_of(visit), version.version, t("automation.graph_of", name=heading.name), steps, lines
        ),
        steps=[
            {"key": step.key, "type": step.type, "detail": details[place]}
            for place, step in enumerate(graph.steps)
        ],
    )
