"""The slice of templates: the routes under `/templates`, their documents, and invariants."""

from __future__ import annotations

from pillarbox.documents.rendering import DocumentRendering
from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.slices import Slice
from pillarbox.templates import routes
from pillarbox.templates.changes import TemplateChanges
from pillarbox.templates.document_changes import TemplateDocuments
from pillarbox.templates.invariants import INVARIANTS

SLICE = Slice(
    name="templates",
    provides={
        TemplateChanges: lambda kit: TemplateChanges(kit.need(Ids)),
        TemplateDocuments: lambda kit: TemplateDocuments(
            kit.need(TemplateChanges), kit.need(DocumentRendering)
        ),
    },
    routes=collect(routes),
    invariants=INVARIANTS,
)
