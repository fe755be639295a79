"""The reference as Markdown for programs, and the index of everything at `/llms.txt` (llmstxt.org)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pillarbox.dashboard.docs import guide
from pillarbox.dashboard.docs.reference import ApiReference, Operation, OperationDetails
from pillarbox.dashboard.docs.shapes import FieldRow
from pillarbox.dashboard.texts import t


def index_text(reference: ApiReference) -> str:
    """Return the text of `/llms.txt`: the pages of the guide, and every operation."""
    lines = ["# Pillarbox", "", f"> {t('docs.lead')}", "", t("docs.llms.base", url=reference.url)]
    lines += ["", f"## {t('docs.guide')}", ""]
    lines += [f"- [{link.title}]({reference.url}{link.path}.md)" for link in guide.ordered()]
    for resource, operations in reference.resources().items():
        lines += ["", f"## {t('docs.llms.resource', resource=resource)}", ""]
        lines += [_index_line(reference, operation) for operation in operations]
    lines += ["", f"## {t('docs.events')}", ""]
    for operations in reference.resources("event").values():
        lines += [_index_line(reference, operation) for operation in operations]
    return "\n".join(lines) + "\n"


def operation_text(reference: ApiReference, details: OperationDetails) -> str:
    """Return the page of an operation as Markdown."""
    operation = details.operation
    lines = [f"# {operation.summary}", "", f"`{operation.method} {operation.path}`"]
    if operation.kind == "api":
        lines += ["", access_text(operation), "", t("docs.llms.base", url=reference.url)]
    for place in ("path", "query", "header"):
        rows = [row.field for row in details.parameters if row.place == place]
        if rows:
            lines += ["", f"## {t(f'docs.parameters.{place}')}", "", *_rows(rows)]
    if details.body is not None:
        lines += ["", f"## {t('docs.body')}", "", *_shape(details.body), "", *_code(details.body_example)]
    for answer in details.answers:
        lines += ["", f"## {t('docs.answer', status=answer.status)}", "", answer.description]
        if answer.shape is not None:
            lines += ["", *_shape(answer.shape, is_answer=True), "", *_code(answer.example)]
        if answer.headers:
            lines += ["", f"{t('docs.headers')}:", "", *_rows(answer.headers, is_answer=True)]
    if details.errors:
        lines += ["", f"## {t('docs.errors')}", ""]
        lines += [f"- {status}: {description}" for status, description in details.errors]
        lines += ["", *_shape(details.error_shape, is_answer=True), "", *_code(details.error_example)]
        lines += ["", f"{t('docs.headers')}:", "", *_rows(details.error_headers, is_answer=True)]
    for sample in details.samples:
        lines += ["", "## curl", "", "```sh", sample.curl, "```"]
        lines += ["", "## Python", "", "```python", sample.python, "```"]
        lines += ["", "## Node", "", "```js", sample.node, "```"]
    return "\n".join(lines) + "\n"


def access_text(operation: Operation) -> str:
    """Return what a caller needs for an operation."""
    if operation.access is None:
        return t("docs.access.public")
    return t(f"docs.access.{operation.access}", scope=operation.definition["x-scope"])


def _index_line(reference: ApiReference, operation: Operation) -> str:
    name = f"{operation.method} {operation.path}" if operation.kind == "api" else operation.path
    summary = f": {operation.summary}" if operation.kind == "api" else ""
    return f"- [{name}]({reference.url}{operation.address}.md){summary}"


def _shape(row: FieldRow | None, *, is_answer: bool = False) -> Iterator[str]:
    if row is None:
        return
    yield f"{row.kind}{_notes(row)}"
    if row.fields:
        yield ""
        yield from _rows(row.fields, is_answer=is_answer)


def _rows(rows: Sequence[FieldRow], depth: int = 0, *, is_answer: bool = False) -> Iterator[str]:
    for row in rows:
        name = f"`{row.name}` " if row.name else ""
        presence = ""
        if row.name and row.is_required != is_answer:
            presence = f", {t('docs.may_lack' if is_answer else 'docs.required')}"
        yield f"{'  ' * depth}- {name}({row.kind}{presence}){_notes(row)}"
        yield from _rows(row.fields, depth + 1, is_answer=is_answer)


def _notes(row: FieldRow) -> str:
    notes = [row.description.rstrip(".")] if row.description else []
    if row.values:
        notes.append(t("docs.values", values=", ".join(f"`{value}`" for value in row.values)))
    notes += row.limits
    if row.is_repeated:
        notes.append(t("docs.repeated", shape=row.shape))
    return f": {'; '.join(notes)}" if notes else ""


def _code(example: str | None) -> Iterator[str]:
    if example is not None:
        yield from ("```json", example, "```")
