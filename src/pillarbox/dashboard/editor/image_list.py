"""The pictures of a team: uploading, their addresses, removing."""

from __future__ import annotations

import json
from typing import Any, Final

from pillarbox.dashboard.frame.screen_table import NavigationEntry
from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people.page_visits import HEADERS, Form
from pillarbox.documents.images import Images
from pillarbox.documents.pictures import LARGEST, PictureRefused
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import Problem
from pillarbox.people.audit import Act
from pillarbox.people.roles import Right

HERE: Final = "/dashboard/images"
LARGEST_FORM: Final = LARGEST + 64 * 1024


@screen(
    HERE,
    title="images.title",
    words="images.words",
    right=Right.USE,
    navigation=NavigationEntry(group="team", order=33, icon="copy"),
    query={"done": str},
)
async def index(visit: Visit) -> Reply[Html]:
    """Show the pictures."""
    return await images_page(visit)


@act(HERE, title="images.add", back=HERE, records=Act.IMAGE_ADDED, limit=LARGEST_FORM)
async def add(visit: Visit, form: Form) -> Reply[Html]:
    """Store a picture. The editor's script asks for JSON."""
    file = next((file for file in form.files if file.field == "file"), None)
    is_script = form.get("as") == "json"
    images = visit.request.use(Images)
    try:
        if file is None:
            raise PictureRefused("Choose a file.")
        image = await images.add(visit.db, file.name, form.get("alt"), file.data)
    except Problem as problem:
        if is_script:
            return _json({"message": problem.message}, problem.status)
        return await images_page(visit, status=problem.status, problem=problem.message, alt=form.get("alt"))
    visit.has_acted(str(image.id), name=image.name)
    if is_script:
        return _json({"address": images.address(image), "alt": image.alt}, 200)
    return visit.to(HERE, done="image_added")


@act(f"{HERE}/{{image_id}}/remove", title="images.remove", back=HERE, records=Act.IMAGE_REMOVED)
async def remove(visit: Visit, _: Form) -> Reply[Html]:
    await visit.request.use(Images).remove(visit.db, visit.request.uuid("image_id"))
    return visit.to(HERE, done="image_removed")


async def images_page(
    visit: Visit, *, status: int = 200, problem: str | None = None, alt: str = ""
) -> Reply[Html]:
    """Return the list with the form, and what was typed in it."""
    return await visit.draw(
        "editor/image_list.html",
        status=status,
        problem=problem,
        here=HERE,
        images=await shown_images(visit),
        alt=alt,
    )


async def shown_images(visit: Visit) -> list[dict[str, Any]]:
    """Return the newest pictures with their addresses."""
    images = visit.request.use(Images)
    return [
        {
            "id": str(image.id),
            "name": image.name,
            "alt": image.alt,
            "width": image.width,
            "height": image.height,
            "size": image.size,
            "address": images.address(image),
            "path": f"/i/{image.blob.rpartition('/')[2]}",
        }
        for image in await images.newest(visit.db)
    ]


def _json(value: object, status: int) -> Reply[Html]:
    return Reply(json.dumps(value).encode(), status, dict(HEADERS), "application/json")
