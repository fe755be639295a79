"""Schemas of the OpenAPI document as rows of a page: name, type, limits, and the fields below."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pillarbox.dashboard.texts import t

Schema = Mapping[str, Any]

REFERENCE: Final = "#/components/schemas/"
RANGES: Final = (
    ("minLength", "maxLength", "characters"),
    ("minItems", "maxItems", "items"),
    ("minProperties", "maxProperties", "properties"),
    ("minimum", "maximum", "numbers"),
)
"""Pairs of limits, and the text that says both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRow:
    """A field as a page shows it, with the fields below. `shape` is the name of its schema, and `is_repeated`
    says that the fields of this schema stand further above."""

    name: str
    kind: str
    is_required: bool = False
    description: str = ""
    limits: Sequence[str] = ()
    values: Sequence[str] = ()
    shape: str = ""
    is_repeated: bool = False
    fields: Sequence[FieldRow] = ()

    @property
    def anchor(self) -> str:
        """The anchor of the shape on its page."""
        return f"shape-{self.shape}"


class ShapeReader:
    """Reads the schemas of one page; each named schema is shown with its fields once."""

    def __init__(self, components: Mapping[str, Schema]) -> None:
        self._components = components
        self._shown: set[str] = set()

    def row(
        self, schema: Schema, name: str = "", *, is_required: bool = False, description: str = ""
    ) -> FieldRow:
        """Return the row of a schema."""
        target, shape = resolved(schema, self._components)
        choices, takes_null = _choices(target)
        is_repeated = False
        fields: tuple[FieldRow, ...] = ()
        own = self._nested(choices)
        if own is not None:
            inner, inner_shape = resolved(own, self._components)
            shape = shape or inner_shape
            is_repeated = bool(shape) and shape in self._shown and bool(_has_fields(inner))
            if shape:
                self._shown.add(shape)
            fields = () if is_repeated else tuple(self._fields(inner))
        elif len(choices) > 1:
            fields = tuple(self.row(choice) for choice in choices if self._nested([choice]) is not None)
        text = " · ".join(filter(None, (description, str(target.get("description", "")))))
        return FieldRow(
            name=name,
            kind=self._kind(choices, takes_null=takes_null),
            is_required=is_required,
            description=text or self._inner_description(own),
            limits=tuple(_limits(choices, self._components)),
            values=tuple(_values(choices, self._components)),
            shape=shape if fields or is_repeated else "",
            is_repeated=is_repeated,
            fields=fields,
        )

    def _inner_description(self, own: Schema | None) -> str:
        if own is None:
            return ""
        return str(resolved(own, self._components)[0].get("description", ""))

    def _nested(self, choices: Sequence[Schema]) -> Schema | None:
        """Return the schema whose fields stand below: the only choice, or its items, if it has fields."""
        holders = [holder for choice in choices if (holder := self._holder(choice)) is not None]
        return holders[0] if len(holders) == 1 else None

    def _holder(self, schema: Schema) -> Schema | None:
        target, _ = resolved(schema, self._components)
        if "anyOf" in target:
            return self._nested(_choices(target)[0])
        if _has_fields(target):
            return schema
        for key in ("items", "additionalProperties"):
            if isinstance(target.get(key), Mapping):
                return self._holder(target[key])
        return None

    def _fields(self, schema: Schema) -> Iterator[FieldRow]:
        required = schema.get("required", ())
        for name, field in schema.get("properties", {}).items():
            yield self.row(field, name, is_required=name in required)

    def _kind(self, choices: Sequence[Schema], *, takes_null: bool) -> str:
        kinds = list(dict.fromkeys(self._plain_kind(choice) for choice in choices))
        if takes_null:
            kinds.append(t("docs.kind.null"))
        return f" {t('docs.kind.or')} ".join(kinds)

    def _plain_kind(self, schema: Schema) -> str:
        target, _ = resolved(schema, self._components)
        if "anyOf" in target or isinstance(target.get("type"), list):
            choices, takes_null = _choices(target)
            return self._kind(choices, takes_null=takes_null)
        kind = _type_of(target)
        if kind == "array":
            items = target.get("items", {})
            return t("docs.kind.array", kind=self._plain_kind(items)) if items else t("docs.kind.any_array")
        if kind == "object" and isinstance(target.get("additionalProperties"), Mapping):
            inner = target["additionalProperties"]
            return t("docs.kind.map", kind=self._plain_kind(inner)) if inner else t("docs.kind.object")
        if kind is None:
            return str(target["const"]).lower() if "const" in target else t("docs.kind.any")
        form = target.get("format")
        return (
            t("docs.kind.format", kind=t(f"docs.kind.{kind}"), form=form) if form else t(f"docs.kind.{kind}")
        )


def resolved(schema: Schema, components: Mapping[str, Schema]) -> tuple[Schema, str]:
    """Return the schema that a reference leads to, and its name."""
    name = ""
    while "$ref" in schema:
        name = str(schema["$ref"]).removeprefix(REFERENCE)
        schema = components[name]
    return schema, name


def field_names(schema: Any, components: Mapping[str, Schema], seen: set[str]) -> Iterator[str]:
    """Yield the names of all fields of a schema, at any depth."""
    if not isinstance(schema, Mapping):
        return
    if "$ref" in schema:
        _, name = resolved(schema, components)
        if name in seen:
            return
        seen.add(name)
        schema = components[name]
    for name, field in schema.get("properties", {}).items():
        yield name
        yield from field_names(field, components, seen)
    for key in ("items", "additionalProperties"):
        yield from field_names(schema.get(key), components, seen)
    for choice in schema.get("anyOf", ()):
        yield from field_names(choice, components, seen)


def _choices(schema: Schema) -> tuple[list[Schema], bool]:
    """Return what a schema may be besides null, and whether it may be null."""
    if "anyOf" in schema:
        parts = [
            _choices(choice) if "$ref" not in choice else ([choice], False) for choice in schema["anyOf"]
        ]
        return [choice for choices, _ in parts for choice in choices], any(null for _, null in parts)
    kinds = schema.get("type")
    if isinstance(kinds, list):
        others = [kind for kind in kinds if kind != "null"]
        return [{**schema, "type": kind} for kind in others], "null" in kinds
    return ([], True) if kinds == "null" else ([schema], False)


def _type_of(schema: Schema) -> str | None:
    kind = schema.get("type")
    if kind is None and "properties" in schema:
        return "object"
    return None if kind is None else str(kind)


def _has_fields(schema: Schema) -> bool:
    return bool(schema.get("properties"))


def _limits(choices: Sequence[Schema], components: Mapping[str, Schema]) -> Iterator[str]:
    """Yield the limits of a value, then those of its items."""
    seen = set()
    for choice in choices:
        target, _ = resolved(choice, components)
        for text in _own_limits(target):
            if text not in seen:
                seen.add(text)
                yield text
        inner = target.get("items") or target.get("additionalProperties")
        if isinstance(inner, Mapping):
            for text in _limits(_choices(resolved(inner, components)[0])[0], components):
                if (each := t("docs.limit.each", limit=text)) not in seen:
                    seen.add(each)
                    yield each


def _own_limits(schema: Schema) -> Iterator[str]:
    for low, high, text in RANGES:
        least, largest = schema.get(low), schema.get(high)
        if least is not None and largest is not None:
            yield t(f"docs.limit.{text}.between", least=f"{least:,}", largest=f"{largest:,}")
        elif largest is not None:
            yield t(f"docs.limit.{text}.up_to", largest=f"{largest:,}")
        elif least == 1 and low != "minimum":
            yield t("docs.limit.not_empty")
        elif least is not None:
            yield t(f"docs.limit.{text}.from", least=f"{least:,}")
    if "pattern" in schema:
        yield t("docs.limit.pattern", pattern=schema["pattern"])


def _values(choices: Sequence[Schema], components: Mapping[str, Schema]) -> Iterator[str]:
    """Yield the words that a value, or each of its items, is one of."""
    for choice in choices:
        target, _ = resolved(choice, components)
        for value in target.get("enum", ()):
            yield _word(value)
        if "const" in target:
            yield _word(target["const"])
        inner = target.get("items") or target.get("additionalProperties")
        if isinstance(inner, Mapping):
            yield from _values(_choices(resolved(inner, components)[0])[0], components)


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)
