"""The content of a broadcast's draft in the editor."""

from __future__ import annotations

from typing import Final

from pillarbox.dashboard.broadcasts.broadcast_list import HERE
from pillarbox.dashboard.broadcasts.draft_steps import step_tabs
from pillarbox.dashboard.editor import editor_page
from pillarbox.dashboard.editor.edited_thing import LARGEST_FORM, EditedThing
from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.people.audit import Act

ONE: Final = f"{HERE}/{{broadcast_id}}/editor"
PAGE: Final = "editor/broadcast.html"


def thing_of(visit: Visit) -> EditedThing:
    """Return the broadcast that the path names."""
    broadcast_id = visit.request.uuid("broadcast_id")
    draft = f"{HERE}/{broadcast_id}"
    return EditedThing(
        path=f"{draft}/editor",
        api=f"/broadcasts/{broadcast_id}",
        is_template=False,
        steps=step_tabs(draft),
    )


@screen(
    ONE,
    title="editor.broadcast",
    query={"contact": str, "mode": str, "view": str, "width": str, "open": str, "done": str},
)
async def show(visit: Visit) -> Reply[Html]:
    """Show the editor."""
    return await editor_page.show(visit, thing_of(visit), PAGE)


@screen(f"{ONE}/html", title="editor.broadcast", query={"contact": str, "mode": str, "view": str})
async def frame(visit: Visit) -> Reply[Html]:
    """Show the mail, for a sandboxed frame."""
    return await editor_page.frame(visit, thing_of(visit))


@act(f"{ONE}/html", title="templates.preview", back=HERE, limit=LARGEST_FORM)
async def unsaved_frame(visit: Visit, form: Form) -> Reply[Html]:
    """Show the mail of what is being written."""
    return await editor_page.unsaved_frame(visit, thing_of(visit), form)


@act(f"{ONE}/save", title="editor.save", back=HERE, limit=LARGEST_FORM)
async def save(visit: Visit, form: Form) -> Reply[Html]:
    """Store what the script sends. The log of acts has the creation and the sending of a broadcast."""
    return await editor_page.save(visit, thing_of(visit), form)


@act(f"{ONE}/block", title="editor.save", back=HERE, records=Act.BROADCAST_CHANGED, limit=LARGEST_FORM)
async def change_block(visit: Visit, form: Form) -> Reply[Html]:
    """Do what the form of one block asks for."""
    return await editor_page.change_block(visit, thing_of(visit), PAGE, form)


@act(f"{ONE}/links", title="links.check", back=HERE)
async def check_links(visit: Visit, _: Form) -> Reply[Html]:
    """Let a job check the links. It changes nothing of the draft."""
    return await editor_page.check_links(visit, thing_of(visit), PAGE)


@act(f"{ONE}/content", title="editor.save", back=HERE, records=Act.BROADCAST_CHANGED, limit=LARGEST_FORM)
async def change_content(visit: Visit, form: Form) -> Reply[Html]:
    """Store subject, sender and text, or write in another way."""
    return await editor_page.change_content(visit, thing_of(visit), PAGE, form)
