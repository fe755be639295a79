"""Operations of the API as the reference shows them, made from the OpenAPI document."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import msgspec

from pillarbox.dashboard.docs.examples import ID, example_of
from pillarbox.dashboard.docs.shapes import FieldRow, Schema, ShapeReader, field_names
from pillarbox.dashboard.frame.code_samples import ApiExample, CodeSample, samples_of
from pillarbox.dashboard.frame.reference_links import API, slug_of
from pillarbox.dashboard.texts import has_text, t
from pillarbox.kernel.http.openapi import HTML, JSON

METHODS: Final = ("get", "post", "put", "patch", "delete")
RESOURCES: Final = (
    *("emails", "domains", "api-keys", "webhooks", "suppressions", "templates", "contacts", "segments"),
    *("topics", "contact-properties", "audiences", "broadcasts", "events", "automations", "inboxes"),
    *("logs", "usage", "oauth"),
)
"""The order of the resources; others come behind."""
NOT_COMPARED: Final = frozenset(("operationId", "parameters"))
"""Parts of operations that are different where several addresses mean the same."""
PAGE_MEDIA: Final = frozenset((HTML, "*/*"))
SAMPLE_TOKEN: Final = "…"  # noqa: S105 (stands for a token)

_PARAMETER = re.compile(r"{(\w+)}")


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. `kind` is `api`, `page` (for browsers) or `event` (of a webhook).

    `same_as` is the slug of the operation that this one is another address of."""

    slug: str
    kind: str
    method: str
    path: str
    summary: str
    resource: str
    definition: Mapping[str, Any]
    same_as: str | None
    words: str

    @property
    def address(self) -> str:
        """The address of its page."""
        return f"{API}/{self.slug}"

    @property
    def access(self) -> str | None:
        """The access that an API key needs; None where everybody may call it."""
        return self.definition.get("x-access")

    @property
    def parameters(self) -> Sequence[Mapping[str, Any]]:
        """The parameters as the document describes them."""
        found: Sequence[Mapping[str, Any]] = self.definition.get("parameters", ())
        return found

    @property
    def body_media(self) -> Sequence[str]:
        """The media types that the body may have; the first one is that of the examples."""
        return list(self.definition.get("requestBody", {}).get("content", {}))

    @property
    def can_be_sent(self) -> bool:
        """Whether the form of the dashboard can send it: a call of the API with a JSON body or none."""
        media = self.body_media
        return self.kind == "api" and self.access is not None and (not media or media[0] == JSON)


@dataclass(frozen=True, slots=True)
class ParameterRow:
    """A parameter with its place: `path`, `query` or `header`."""

    place: str
    field: FieldRow


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """An answer by its status: its media types, headers, shape and an example."""

    status: str
    description: str
    media: Sequence[str]
    headers: Sequence[FieldRow]
    shape: FieldRow | None
    example: str | None


@dataclass(frozen=True, slots=True)
class OperationDetails:
    """All that the page of an operation shows."""

    operation: Operation
    parameters: Sequence[ParameterRow]
    body: FieldRow | None
    is_body_required: bool
    body_example: str | None
    answers: Sequence[AnswerRow]
    errors: Sequence[tuple[str, str]]
    error_headers: Sequence[FieldRow]
    error_shape: FieldRow | None
    error_example: str | None
    samples: Sequence[CodeSample]


class ApiReference:
    """The operations of a document, in its order."""

    def __init__(self, encoded: bytes, url: str) -> None:
        document = msgspec.json.decode(encoded)
        self.url = url.rstrip("/")
        self._components: Mapping[str, Any] = document["components"]
        self._schemas: Mapping[str, Schema] = self._components["schemas"]
        self.operations: Sequence[Operation] = [*self._of_paths(document), *self._of_events(document)]
        self.by_slug = {operation.slug: operation for operation in self.operations}

    def resources(self, kind: str = "api") -> Mapping[str, Sequence[Operation]]:
        """Return the operations of a kind by their resource, without those that have another address."""
        found: dict[str, list[Operation]] = {}
        for operation in self.operations:
            if operation.kind == kind and operation.same_as is None:
                found.setdefault(operation.resource, []).append(operation)
        return dict(sorted(found.items(), key=lambda entry: _place(entry[0])))

    def details(self, operation: Operation) -> OperationDetails:
        """Return what the page of an operation shows."""
        reader = ShapeReader(self._schemas)
        parameters = [
            ParameterRow(entry["in"], self._parameter_row(reader, entry)) for entry in operation.parameters
        ]
        described = operation.definition.get("requestBody", {})
        schema = next((content.get("schema") for content in described.get("content", {}).values()), None)
        body = None if schema is None else reader.row(schema)
        responses = {
            status: self._resolved(response) for status, response in operation.definition["responses"].items()
        }
        failed = {status: response for status, response in responses.items() if status[0] in "45"}
        error_schema = next((_schema_of(response) for response in failed.values()), None)
        return OperationDetails(
            operation=operation,
            parameters=parameters,
            body=body,
            is_body_required=bool(described.get("required")),
            body_example=None if schema is None else _text(self.body_example(operation)),
            answers=[
                self._answer(reader, status, response)
                for status, response in responses.items()
                if status not in failed
            ],
            errors=[(status, response["description"]) for status, response in failed.items()],
            error_headers=self._headers(failed.values()),
            error_shape=None if error_schema is None else reader.row(error_schema),
            error_example=None if error_schema is None else _text(self._example(error_schema)),
            samples=self.samples(operation),
        )

    def body_example(self, operation: Operation) -> Any:
        """Return an example of the body; None where there is none."""
        content = operation.definition.get("requestBody", {}).get("content", {})
        schema = next((entry.get("schema") for entry in content.values()), None)
        return None if schema is None else example_of(schema, self._schemas, is_request=True)

    def samples(self, operation: Operation) -> Sequence[CodeSample]:
        """Return the operation as code, with values in its path; pages and events have none."""
        if operation.kind != "api":
            return ()
        query = {
            entry["name"]: str(self.parameter_example(entry))
            for entry in operation.parameters
            if entry["in"] == "query" and entry["required"]
        }
        example = ApiExample(
            operation.method,
            path_with(
                operation.path,
                {
                    entry["name"]: self._path_value(entry)
                    for entry in operation.parameters
                    if entry["in"] == "path"
                },
            ),
            query,
            self.body_example(operation),
            needs_key=operation.access is not None,
            media=next(iter(operation.body_media), JSON),
        )
        return samples_of([example], self.url)

    def parameter_example(self, entry: Mapping[str, Any]) -> Any:
        """Return a value for a parameter."""
        return example_of(entry["schema"], self._schemas, entry["name"], is_request=True)

    def _path_value(self, entry: Mapping[str, Any]) -> str:
        if entry["schema"].get("format") == "uuid" or "pattern" not in entry["schema"]:
            return SAMPLE_TOKEN if entry["name"] == "token" else ID
        return quote(str(self.parameter_example(entry)), safe="@")

    # Reading the document -------------------------------------------------------------------------

    def _of_paths(self, document: Mapping[str, Any]) -> Iterator[Operation]:
        addresses: dict[str, str] = {}
        for path, item in document["paths"].items():
            for method in METHODS:
                if method in item:
                    definition = item[method]
                    content = {key: value for key, value in definition.items() if key not in NOT_COMPARED}
                    slug = slug_of(definition["operationId"])
                    known = addresses.setdefault(json.dumps([method, content], sort_keys=True), slug)
                    yield self._operation(slug, method, path, definition, None if known == slug else known)

    def _operation(
        self, slug: str, method: str, path: str, definition: Mapping[str, Any], same_as: str | None
    ) -> Operation:
        summary = definition["summary"]
        title = t(summary) if has_text(summary) else summary
        return Operation(
            slug=slug,
            kind="page" if _is_page(definition) else "api",
            method=method.upper(),
            path=path,
            summary=title,
            resource=definition["tags"][0],
            definition=definition,
            same_as=same_as,
            words=self._words(f"{method} {path} {title}", definition),
        )

    def _of_events(self, document: Mapping[str, Any]) -> Iterator[Operation]:
        for kind, item in document["webhooks"].items():
            definition = item["post"]
            yield Operation(
                slug=slug_of(definition["operationId"]),
                kind="event",
                method="POST",
                path=kind,
                summary=kind,
                resource=kind.partition(".")[0],
                definition=definition,
                same_as=None,
                words=self._words(f"webhook event {kind}", definition),
            )

    def _words(self, beginning: str, definition: Mapping[str, Any]) -> str:
        """Return the text that the search looks in: path, title, and names of parameters and fields."""
        names: list[str] = [parameter["name"] for parameter in definition.get("parameters", ())]
        seen: set[str] = set()
        contents = [definition.get("requestBody", {}), *definition["responses"].values()]
        for content in contents:
            for shown in content.get("content", {}).values():
                names += field_names(shown.get("schema"), self._schemas, seen)
        return " ".join([beginning, *dict.fromkeys(names)]).casefold()

    def _resolved(self, response: Mapping[str, Any]) -> Mapping[str, Any]:
        if "$ref" in response:
            found: Mapping[str, Any] = self._components["responses"][response["$ref"].rpartition("/")[2]]
            return found
        return response

    def _parameter_row(self, reader: ShapeReader, entry: Mapping[str, Any]) -> FieldRow:
        return reader.row(
            entry["schema"],
            entry["name"],
            is_required=entry["required"],
            description=entry.get("description", ""),
        )

    def _answer(self, reader: ShapeReader, status: str, response: Mapping[str, Any]) -> AnswerRow:
        schema = _schema_of(response)
        is_json = schema is not None and JSON in response.get("content", {})
        return AnswerRow(
            status=status,
            description=response["description"],
            media=[media for media in response.get("content", {}) if media != "*/*"],
            headers=self._headers([response]),
            shape=reader.row(schema) if is_json and schema is not None else None,
            example=_text(self._example(schema)) if is_json and schema is not None else None,
        )

    def _headers(self, responses: Any) -> list[FieldRow]:
        """Return the headers of these answers, each once."""
        reader, rows = ShapeReader(self._schemas), {}
        for response in responses:
            for name, header in response.get("headers", {}).items():
                if "$ref" in header:
                    header = self._components["headers"][header["$ref"].rpartition("/")[2]]
                rows[name] = reader.row(header["schema"], name, description=header.get("description", ""))
        return list(rows.values())

    def _example(self, schema: Schema) -> Any:
        return example_of(schema, self._schemas, is_request=False)


def path_with(path: str, values: Mapping[str, str]) -> str:
    """Return the path with these values in place of its parameters."""
    return _PARAMETER.sub(lambda name: values[name[1]], path)


def _place(resource: str) -> int:
    return RESOURCES.index(resource) if resource in RESOURCES else len(RESOURCES)


def _schema_of(response: Mapping[str, Any]) -> Schema | None:
    content = response.get("content", {})
    schema: Schema | None = content[JSON].get("schema") if JSON in content else None
    return schema


def _is_page(definition: Mapping[str, Any]) -> bool:
    """Return whether people open it in a browser: no key is needed, and no answer is JSON."""
    contents = [
        response.get("content", {})
        for status, response in definition["responses"].items()
        if status[0] not in "45"
    ]
    return definition.get("security") == [] and all(set(content) <= PAGE_MEDIA for content in contents)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)
