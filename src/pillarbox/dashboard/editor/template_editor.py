"""One template: its editor, and what is done with it."""

from __future__ import annotations

from typing import Final

from pillarbox.dashboard.editor import editor_page
from pillarbox.dashboard.editor.edited_thing import LARGEST_FORM, EditedThing, content_of
from pillarbox.dashboard.editor.preview import contact_values, personal_mail
from pillarbox.dashboard.editor.template_list import HERE
from pillarbox.dashboard.emails.send_form import split_addresses, usual_sender
from pillarbox.dashboard.frame.screen_table import ScreenTable
from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t
from pillarbox.documents.rendering import RenderedDocument
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import Invalid, Problem
from pillarbox.mail.placeholders.parsing import filled, links
from pillarbox.people.audit import Act

ONE: Final = f"{HERE}/{{template_id}}"
PAGE: Final = "editor/template.html"
MOST_COPIES: Final = 10
"""Recipients of test copies."""


def thing_of(visit: Visit) -> EditedThing:
    """Return the template that the path names."""
    template_id = visit.request.uuid("template_id")
    return EditedThing(f"{HERE}/{template_id}", f"/templates/{template_id}", is_template=True)


@screen(
    ONE,
    title="template.title",
    query={"contact": str, "mode": str, "view": str, "width": str, "open": str, "done": str},
)
async def show(visit: Visit) -> Reply[Html]:
    """Show the editor."""
    return await template_page(visit)


@screen(f"{ONE}/html", title="template.title", query={"contact": str, "mode": str, "view": str})
async def frame(visit: Visit) -> Reply[Html]:
    """Show the mail of the template, for a sandboxed frame."""
    return await editor_page.frame(visit, thing_of(visit))


@act(f"{ONE}/html", title="templates.preview", back=HERE, limit=LARGEST_FORM)
async def unsaved_frame(visit: Visit, form: Form) -> Reply[Html]:
    """Show the mail of what is being written."""
    return await editor_page.unsaved_frame(visit, thing_of(visit), form)


@act(f"{ONE}/save", title="editor.save", back=HERE, limit=LARGEST_FORM)
async def save(visit: Visit, form: Form) -> Reply[Html]:
    """Store what the script sends. The log of acts has the first change after a publication."""
    thing = thing_of(visit)
    before = await visit.get(thing.api, shown=False)
    reply = await editor_page.save(visit, thing, form)
    if reply.status == 200 and not before["has_unpublished_versions"]:
        visit.has_acted(before["id"], Act.TEMPLATE_CHANGED)
    return reply


@act(f"{ONE}/block", title="editor.save", back=HERE, records=Act.TEMPLATE_CHANGED, limit=LARGEST_FORM)
async def change_block(visit: Visit, form: Form) -> Reply[Html]:
    """Do what the form of one block asks for."""
    return await editor_page.change_block(visit, thing_of(visit), PAGE, form)


@act(f"{ONE}/content", title="editor.save", back=HERE, records=Act.TEMPLATE_CHANGED, limit=LARGEST_FORM)
async def change_content(visit: Visit, form: Form) -> Reply[Html]:
    """Store subject, sender and text, or write in another way."""
    return await editor_page.change_content(visit, thing_of(visit), PAGE, form)


@act(f"{ONE}/links", title="links.check", back=HERE)
async def check_links(visit: Visit, _: Form) -> Reply[Html]:
    """Let a job check the links. It changes nothing of the template."""
    return await editor_page.check_links(visit, thing_of(visit), PAGE)


@act(f"{ONE}/publish", title="template.publish", back=HERE, records=Act.TEMPLATE_PUBLISHED)
async def publish(visit: Visit, _: Form) -> Reply[Html]:
    thing = thing_of(visit)
    try:
        await visit.post(f"{thing.api}/publish")
    except Problem as problem:
        return await template_page(visit, status=problem.status, problem=problem.message)
    return visit.to(thing.path, done="template_published")


@act(f"{ONE}/duplicate", title="template.duplicate", back=HERE, records=Act.TEMPLATE_CREATED)
async def duplicate(visit: Visit, _: Form) -> Reply[Html]:
    visit.acts_on(None)
    made = await visit.post(f"{thing_of(visit).api}/duplicate")
    return visit.to(f"{HERE}/{made['id']}", done="template_duplicated")


@act(f"{ONE}/delete", title="template.delete", back=HERE, records=Act.TEMPLATE_DELETED)
async def delete(visit: Visit, form: Form) -> Reply[Html]:
    """Delete the template, whose name must be typed."""
    thing = thing_of(visit)
    template = await visit.get(thing.api, shown=False)
    if form.get("typed_name").strip() != template["name"].strip():
        return await template_page(visit, status=422, problem=t("template.typed_wrong"))
    visit.acts_on(template["id"], name=template["name"])
    await visit.delete(thing.api)
    return visit.to(HERE, done="template_deleted")


@act(f"{ONE}/test", title="template.test", back=HERE, records=Act.EMAILS_SENT)
async def send_copies(visit: Visit, form: Form) -> Reply[Html]:
    """Send the draft as it is to some addresses, as the chosen contact would get it."""
    thing = thing_of(visit)
    try:
        content = await content_of(visit, thing)
        recipients = split_addresses(form.get("to"))
        if not 0 < len(recipients) <= MOST_COPIES:
            raise Invalid(t("template.test.most", count=MOST_COPIES))
        contact = await contact_values(visit, form.get("contact").strip())
        mail = personal_mail(
            RenderedDocument(content.html, content.text), content.shown["subject"], content.variables, contact
        )
        origin = visit.request.use(ScreenTable).public_url
        emails = [
            {
                "from": content.shown["from"] or await usual_sender(visit),
                "to": recipient,
                "reply_to": content.shown["reply_to"] or None,
                "subject": t("template.test.subject", subject=mail.subject or content.shown["name"]),
                "html": filled(mail.html, links(origin, is_html=True)) or None,
                "text": filled(mail.text or "", links(origin, is_html=False)) or None,
                "tags": [{"name": "template_test", "value": str(content.shown["id"])}],
            }
            for recipient in recipients
        ]
        await visit.post("/emails/batch", emails)
    except Problem as problem:
        return await template_page(visit, status=problem.status, problem=problem.message)
    return visit.to(thing.path, done="template_test")


async def template_page(visit: Visit, *, status: int = 200, problem: str | None = None) -> Reply[Html]:
    """Show the editor, with what was wrong with a form."""
    return await editor_page.show(
        visit, thing_of(visit), PAGE, status=status, problem=problem, most_copies=MOST_COPIES
    )
