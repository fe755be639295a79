"""The mapping of a file's columns: what people see of the file, and what they chose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from pillarbox.contacts.imports.columns import ColumnPositions
from pillarbox.contacts.imports.preview import MOST_COLUMNS, FilePreview
from pillarbox.contacts.imports.uploads import ImportUploads, WizardChoices, waiting
from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.imports.import_list import HERE, NEW
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import Invalid, NotFound, Problem
from pillarbox.kernel.wire.uuids import well_formed
from pillarbox.people.audit import Act
from pillarbox.people.roles import Right

ONE: Final = f"{NEW}/{{upload_id}}"
FIELDS: Final = ("email", "first_name", "last_name", "unsubscribed")
PROPERTY: Final = "property"
TYPES: Final = ("string", "number", "boolean")
MOST_SEGMENTS: Final = 100
MOST_TOPICS: Final = 30
MOST_PROPERTIES: Final = 100
SAMPLES: Final = 3


@screen(ONE, title="imports.map", right=Right.USE)
async def show(visit: Visit) -> Reply[Html]:
    return await _mapping_page(visit, None)


@act(ONE, title="imports.map", back=HERE, records=Act.IMPORT_STARTED)
async def start(visit: Visit, form: Form) -> Reply[Html]:
    """Start the import as the form says."""
    upload_id = visit.request.uuid("upload_id")
    file, preview = await waiting(visit.db, upload_id)
    try:
        types = {one["key"]: one["type"] for one in await _properties(visit)}
        columns = _columns(form, preview, types)
        segments = await _segments(visit, form)
        async with visit.change() as db:
            import_id = await visit.request.use(ImportUploads).start(
                db,
                upload_id,
                WizardChoices(
                    columns=columns,
                    is_skip=form.get("on_conflict") != "upsert",
                    segments=segments,
                    topics=_topics(form),
                    consent_note=form.get("consent_note").strip(),
                ),
            )
            visit.acts_on(str(import_id), file=file.file_name)
    except NotFound:
        raise
    except Problem as problem:
        return await _mapping_page(visit, form, status=problem.status, problem=problem.message)
    return visit.to(f"{HERE}/{import_id}")


@act(f"{ONE}/discard", title="imports.discard", back=HERE)
async def discard(visit: Visit, _: Form) -> Reply[Html]:
    """Remove the file."""
    await visit.request.use(ImportUploads).discard(visit.db, visit.request.uuid("upload_id"))
    return visit.to(HERE, done="import_discarded")


async def _properties(visit: Visit) -> Sequence[Mapping[str, Any]]:
    answer = await visit.get("/contact-properties", shown=False)
    rows: Sequence[Mapping[str, Any]] = answer["data"]
    return rows


def _columns(form: Form, preview: FilePreview, types: Mapping[str, str]) -> ColumnPositions:
    """Return the mapping that the form asks for. A property that exists keeps its type."""
    fields: dict[str, int] = {}
    properties: dict[str, tuple[int, str]] = {}
    for at in range(min(preview.width, MOST_COLUMNS)):
        target = form.get(f"to_{at}")
        if target in FIELDS:
            if target in fields:
                raise Invalid(t("imports.twice", field=t(f"imports.to.{target}")))
            fields[target] = at
        elif target == PROPERTY:
            key = form.get(f"key_{at}").strip()
            kind = types.get(key) or form.get(f"type_{at}")
            if key in properties:
                raise Invalid(t("imports.twice", field=key))
            properties[key] = (at, kind if kind in TYPES else "string")
    if "email" not in fields:
        raise Invalid(t("imports.no_email"))
    return ColumnPositions(fields, properties)


async def _segments(visit: Visit, form: Form) -> list[UUID]:
    """Return the chosen segments; one with a new name is made."""
    found = [UUID(value) for value in form.every("segment") if well_formed(value)]
    if name := form.get("new_segment").strip():
        made = await visit.post("/segments", {"name": name})
        found.append(UUID(made["id"]))
    return list(dict.fromkeys(found))


def _topics(form: Form) -> dict[UUID, str]:
    chosen = {name.removeprefix("topic_"): value for name, value in form.fields if name.startswith("topic_")}
    return {
        UUID(topic): value
        for topic, value in chosen.items()
        if well_formed(topic) and value in ("opt_in", "opt_out")
    }


async def _mapping_page(
    visit: Visit, form: Form | None, *, status: int = 200, problem: str | None = None
) -> Reply[Html]:
    upload_id = visit.request.uuid("upload_id")
    file, preview = await waiting(visit.db, upload_id)
    properties = await _properties(visit)
    segments = await visit.get("/segments", limit=MOST_SEGMENTS, shown=False)
    topics = await visit.get("/topics", limit=MOST_TOPICS, shown=False)
    known = {one["key"].lower(): one for one in properties}
    columns = []
    for at, guess in enumerate(preview.columns):
        existing = known.get(guess.key)
        columns.append(
            {
                "at": at,
                "header": guess.header,
                "samples": [row[at] for row in preview.rows if at < len(row) and row[at]][:SAMPLES],
                "to": form.get(f"to_{at}") if form else guess.field,
                "key": form.get(f"key_{at}") if form else existing["key"] if existing else guess.key,
                "type": form.get(f"type_{at}") if form else existing["type"] if existing else guess.type,
            }
        )
    return await visit.draw(
        "imports/map.html",
        status=status,
        problem=problem,
        here=f"{NEW}/{upload_id}",
        file=file,
        columns=columns,
        rows=preview.rows,
        width=preview.width,
        most_columns=MOST_COLUMNS,
        targets=["", *FIELDS, PROPERTY],
        types=TYPES,
        properties=properties[:MOST_PROPERTIES],
        segments=segments["data"],
        topics=topics["data"],
        chosen_segments=form.every("segment") if form else [],
        chosen_topics=dict(form.fields) if form else {},
        new_segment=form.get("new_segment") if form else "",
        on_conflict=form.get("on_conflict") if form else "upsert",
        consent_note=form.get("consent_note") if form else "",
    )
