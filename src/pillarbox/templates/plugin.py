"""The slice of templates: the routes under `/templates`, and invariants."""

from __future__ import annotations

from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.slices import Slice
from pillarbox.templates import routes
from pillarbox.templates.changes import TemplateChanges
from pillarbox.templates.invariants import INVARIANTS

SLICE = Slice(
    name="templates",
    provides={TemplateChanges: lambda kit: TemplateChanges(kit.need(Ids))},
    routes=collect(routes),
    invariants=INVARIANTS,
)
