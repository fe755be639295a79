"""The templates of a team, and how a new one begins: from the gallery, or empty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pillarbox.dashboard.editor.edited_thing import MJML_START
from pillarbox.dashboard.editor.preview import PreviewLook, preview_frame
from pillarbox.dashboard.frame.paging import list_page
from pillarbox.dashboard.frame.screen_table import NavigationEntry
from pillarbox.dashboard.frame.screens import act, download, screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t
from pillarbox.dashboard.texts.languages import ENGLISH, GERMAN, language
from pillarbox.documents.blocks import way_out
from pillarbox.documents.gallery import GALLERY
from pillarbox.documents.gallery_german import GERMAN_GALLERY
from pillarbox.documents.gallery_parts import GalleryTemplate
from pillarbox.documents.rendering import DocumentRendering
from pillarbox.documents.source import document_of
from pillarbox.documents.team_theme import theme_of
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import NotFound, Problem
from pillarbox.people.audit import Act
from pillarbox.people.roles import Right

HERE: Final = "/dashboard/templates"
GALLERY_FRAME: Final = "/dashboard/template-gallery/html"
GALLERIES: Final[dict[str, Mapping[str, GalleryTemplate]]] = {ENGLISH: GALLERY, GERMAN: GERMAN_GALLERY}
"""The gallery in the languages of readers."""
EMPTY: Final[dict[str, dict[str, Any]]] = {
    "blocks": {
        "kind": "blocks",
        "blocks": [{"type": "heading", "text": "", "level": 1}, {"type": "text", "text": ""}],
    },
    "markdown": {"kind": "markdown", "text": "# \n\n"},
    "mjml": {"kind": "mjml", "source": MJML_START.format(text="")},
    "html": {"kind": "html", "html": "<p></p>\n"},
}
"""Documents to begin with, by kind."""


@screen(
    HERE,
    title="templates.title",
    words="templates.words",
    navigation=NavigationEntry(group="email", order=30, icon="template", keys="t"),
    query={"after": str, "before": str, "done": str},
)
async def index(visit: Visit) -> Reply[Html]:
    """Show the templates, each with a picture of its mail."""
    page = await list_page(visit, "/templates", HERE)
    return await visit.draw("editor/template_list.html", templates=page.rows, paging=page.paging, here=HERE)


@screen(f"{HERE}/new", title="templates.new", words="templates.new.words", right=Right.USE)
async def new(visit: Visit) -> Reply[Html]:
    """Show the gallery."""
    return await new_page(visit)


async def new_page(
    visit: Visit, *, status: int = 200, problem: str | None = None, name: str = ""
) -> Reply[Html]:
    """Show the gallery, with what was typed."""
    return await visit.draw(
        "editor/template_new.html",
        status=status,
        problem=problem,
        name=name,
        here=HERE,
        gallery_frame=GALLERY_FRAME,
        gallery=list(GALLERY),
        kinds=list(EMPTY),
    )


@download(GALLERY_FRAME, title="templates.preview", right=Right.USE, query={"name": str, "mode": str})
async def gallery_frame(visit: Visit) -> Reply[Html]:
    """Show a mail of the gallery in the team's theme, for a sandboxed frame."""
    template = _of_gallery(visit.request.query.text("name") or "")
    rendering = visit.request.use(DocumentRendering)
    document = document_of(template.document)
    mail = await rendering.render(
        visit.team_id, document, await theme_of(visit.db), visit.request.is_client_gone
    )
    look = PreviewLook(is_dark=visit.request.query.last("mode") == "dark")
    return await preview_frame(visit, mail, template.subject, template.variables, look)


@act(HERE, title="templates.new", back=f"{HERE}/new", records=Act.TEMPLATE_CREATED)
async def create(visit: Visit, form: Form) -> Reply[Html]:
    """Create a template and open the editor."""
    name, chosen = form.get("name").strip(), form.get("start")
    try:
        if chosen in EMPTY:
            document, fields = empty_document(chosen), {}
        else:
            template = _of_gallery(chosen)
            document = template.document
            fields = {"subject": template.subject, "variables": template.variables}
            name = name or t(f"gallery.{template.name}")
        made = await visit.post("/templates", {"name": name or t("templates.unnamed"), "html": ""})
        await visit.put(f"/templates/{made['id']}/document", {"document": document, **fields})
    except Problem as problem:
        return await new_page(visit, status=problem.status, problem=problem.message, name=name)
    return visit.to(f"{HERE}/{made['id']}")


def empty_document(kind: str) -> dict[str, Any]:
    """Return a document to begin with, in the reader's language."""
    document = dict(EMPTY[kind])
    if kind in ("blocks", "markdown"):
        document["language"] = language()
    if kind == "blocks":
        document["blocks"] = [*document["blocks"], {"type": "footer", "unsubscribe": way_out(language())}]
    return document


def _of_gallery(name: str) -> GalleryTemplate:
    template = GALLERIES[language()].get(name)
    if template is None:
        raise NotFound("Template")
    return template
