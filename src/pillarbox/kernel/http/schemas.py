"""JSON Schemas of the types that the wire uses: of answers as msgspec encodes them, of requests as
`fields.parse` reads them.

A struct becomes a component of the document. An answer has every field that its type does not allow to be
UNSET, and no field besides. A request ignores unknown fields; a field with a default may be left out, and
null means the same unless the default is UNSET.

What a type alone does not say stands in its `Meta`: `shown_as(T)` where the field is encoded already, or is
of another type for Python; `one_of(words)`; and `extra_json_schema`, which is added to the schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from inspect import cleandoc
from types import UnionType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Meta, Struct, UnsetType, inspect
from msgspec.structs import fields

Schema = dict[str, Any]
Use = Literal["answer", "request"]

REFERENCE = "#/components/schemas/"


AnObject = Annotated[Any, Meta(extra_json_schema={"type": "object"})]
"""For `shown_as`: an object whose fields the document does not name."""


def shown_as(kind: Any) -> Meta:
    """Return metadata for `Annotated`: the wire has this where Python has something else."""
    return Meta(extra={"shape": kind})


def one_of(words: Iterable[Any]) -> Meta:
    """Return metadata for `Annotated`: the text is one of these, or of the values of these members of
    an `Enum`."""
    values = [word.value if isinstance(word, Enum) else word for word in words]
    return Meta(extra_json_schema={"enum": values})


@dataclass(frozen=True, slots=True)
class RequiredParameter:
    """Around the type of a parameter of a route's `query`: there is no answer without it."""

    kind: Any


def least_properties(kind: Any) -> int:
    """Return how many fields a request of this struct must have besides those that have no default: its class
    attribute `min_properties`, 0 where it has none."""
    least: int = getattr(kind, "min_properties", 0)
    return least


def must_be_given(kind: Any) -> tuple[str, ...]:
    """Return which fields a request of this struct must have though null is one of their values: its class
    attribute of the same name."""
    names: tuple[str, ...] = getattr(kind, "must_be_given", ())
    return names


def may_be_left_out(kind: Any) -> bool:
    """Return whether a route with this body goes without it: no field of the struct is needed."""
    own = get_origin(kind) or kind
    if not (isinstance(own, type) and issubclass(own, Struct)) or least_properties(own) or must_be_given(own):
        return False
    return not any(field.required for field in fields(own))


class Schemas:
    """The components of one document, each under the name of its struct; these names are unique."""

    def __init__(self) -> None:
        self._kinds: dict[str, Any] = {}
        self._infos: dict[int, tuple[Any, Any]] = {}
        self._uses: dict[str, Use] = {}
        self.components: dict[str, Schema] = {}

    def answer(self, kind: Any) -> Schema:
        """Return the schema of what an answer of this type is on the wire. It may be one of
        several structs."""
        if isinstance(kind, UnionType) and all(
            isinstance(one, type) and issubclass(one, Struct) for one in get_args(kind)
        ):
            return {"anyOf": [self.answer(one) for one in get_args(kind)]}
        return self._shown(self._info(kind), "answer")

    def request(self, kind: Any) -> Schema:
        """Return the schema of what a body or parameter of this type may be."""
        return self._shown(self._info(kind), "request")

    def _info(self, kind: Any) -> Any:
        if id(kind) not in self._infos:
            self._infos[id(kind)] = (kind, inspect.type_info(kind))
        return self._infos[id(kind)][1]

    def _shown(self, info: Any, use: Use) -> Schema:
        if isinstance(info, inspect.Metadata):
            return self._with_meta(info, use)
        if isinstance(info, inspect.StructType):
            return self._reference(info, use)
        if isinstance(info, inspect.UnionType):
            return self._union(info, use)
        if isinstance(info, inspect.ListType | inspect.VarTupleType):
            array = {"type": "array", "items": self._shown(info.item_type, use)}
            return _limited(array, minItems=info.min_length, maxItems=info.max_length)
        if isinstance(info, inspect.DictType):
            values = self._shown(info.value_type, use)
            limits = {"minProperties": info.min_length, "maxProperties": info.max_length}
            return _limited({"type": "object", "additionalProperties": values}, **limits)
        for kind, schema_of in _PLAIN:
            if isinstance(info, kind):
                return schema_of(info)
        raise TypeError(f"{info} says nothing about its values; use `shown_as` or `extra_json_schema`")

    def _with_meta(self, info: inspect.Metadata, use: Use) -> Schema:
        extra = info.extra or {}
        if "shape" in extra:
            schema = self._shown(self._info(extra["shape"]), use)
        elif info.extra_json_schema and isinstance(info.type, inspect.AnyType | inspect.RawType):
            schema = {}
        else:
            schema = self._shown(info.type, use)
        return schema | (info.extra_json_schema or {})

    def _union(self, info: inspect.UnionType, use: Use) -> Schema:
        kinds = [kind for kind in info.types if not isinstance(kind, inspect.NoneType)]
        shown = [self._shown(kind, use) for kind in kinds]
        schema = shown[0] if len(shown) == 1 else {"anyOf": shown}
        return or_null(schema) if len(kinds) < len(info.types) else schema

    # Structs --------------------------------------------------------------------------------------

    def _reference(self, info: inspect.StructType, use: Use) -> Schema:
        name = self._name(info)
        if self._uses.setdefault(name, use) != use:
            raise TypeError(f"{name} is a shape of requests and of answers; give each its own")
        if name not in self.components:
            self.components[name] = {}
            self.components[name] = self._struct(info, use)
        return {"$ref": REFERENCE + name}

    def _name(self, info: inspect.StructType) -> str:
        name = _component_name(info.cls)
        if self._kinds.setdefault(name, info.cls) != info.cls:
            raise TypeError(f"two shapes are called {name}")
        return name

    def _struct(self, info: inspect.StructType, use: Use) -> Schema:
        own = get_origin(info.cls) or info.cls
        described = vars(own).get("__doc__")
        schema: Schema = {"type": "object"}
        if described:
            schema["description"] = " ".join(cleandoc(described).split())
        unset = _may_be_unset(own)
        fields = {field.encode_name: self._field(field, use, field.name in unset) for field in info.fields}
        if info.tag_field is not None:
            fields = {info.tag_field: ({"type": "string", "enum": [info.tag]}, True), **fields}
        schema["properties"] = {name: shown for name, (shown, _) in fields.items()}
        named = must_be_given(own) if use == "request" else ()
        schema["required"] = [name for name, (_, required) in fields.items() if required or name in named]
        if use == "answer":
            schema["additionalProperties"] = False
        if use == "request" and (least := least_properties(own)):
            schema["minProperties"] = least
        return schema

    def _field(self, field: inspect.Field, use: Use, may_be_unset: bool) -> tuple[Schema, bool]:
        schema = self._shown(field.type, use)
        if use == "answer":
            return schema, not may_be_unset
        if field.required:
            return _not_empty(field.type, schema), True
        has_default = field.default is not NODEFAULT or field.default_factory is not NODEFAULT
        return (or_null(schema) if has_default and not may_be_unset else schema), False


def or_null(schema: Schema) -> Schema:
    """Return the schema that also allows null."""
    if not schema or _takes_null(schema):
        return schema
    if isinstance(schema.get("type"), str) and "enum" not in schema and "const" not in schema:
        return {**schema, "type": [schema["type"], "null"]}
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    return {"anyOf": [schema, {"type": "null"}]}


def _takes_null(schema: Schema) -> bool:
    if "anyOf" in schema:
        return any(_takes_null(kind) for kind in schema["anyOf"])
    return schema.get("type") == "null" or "null" in (schema.get("type") or ())


def _not_empty(info: Any, schema: Schema) -> Schema:
    """Return the schema of a required text, which may not be "" unless its `Meta` says so."""
    extra = (info.extra or {}) if isinstance(info, inspect.Metadata) else {}
    if schema.get("type") == "string" and not extra.get("empty") and "enum" not in schema:
        return {"minLength": 1} | schema
    return schema


def _may_be_unset(kind: Any) -> set[str]:
    hints = get_type_hints(kind, include_extras=True)
    return {name for name, hint in hints.items() if UnsetType in get_args(hint)}


def _component_name(kind: Any) -> str:
    """Return the name of a struct: `ListOf[Email]` is a ListOfEmail.

    Where the name of the inner struct begins with its slice, that stays first: `ListOf[EmailsListItem]` is an
    EmailsListOfListItem.
    """
    own: str = (get_origin(kind) or kind).__name__
    inner = "".join(_component_name(argument) for argument in get_args(kind))
    owner = "".join(part.title() for part in _slice_of(kind))
    return f"{owner}{own}{inner.removeprefix(owner)}" if inner.startswith(owner) else own + inner


def _slice_of(kind: Any) -> list[str]:
    inner = get_args(kind)
    module: str = (inner[0] if inner else kind).__module__
    return module.removeprefix("pillarbox.").split(".")[:-1]


# Plain values -------------------------------------------------------------------------------------


def _limited(schema: Schema, **limits: Any) -> Schema:
    return schema | {name: limit for name, limit in limits.items() if limit is not None}


def _text(info: Any) -> Schema:
    limits = {"minLength": info.min_length, "maxLength": info.max_length, "pattern": info.pattern}
    return _limited({"type": "string"}, **limits)


def _number(name: str) -> Callable[[Any], Schema]:
    return lambda info: _limited({"type": name}, minimum=info.ge, maximum=info.le)


def _words(info: Any) -> Schema:
    kinds = {bool: "boolean", str: "string", int: "integer"}
    return {"type": kinds[type(info.values[0])], "enum": list(info.values)}


_PLAIN: tuple[tuple[type[Any], Callable[[Any], Schema]], ...] = (
    (inspect.StrType, _text),
    (inspect.BoolType, lambda _: {"type": "boolean"}),
    (inspect.IntType, _number("integer")),
    (inspect.FloatType, _number("number")),
    (inspect.UUIDType, lambda _: {"type": "string", "format": "uuid"}),
    (inspect.NoneType, lambda _: {"type": "null"}),
    (inspect.LiteralType, _words),
    (inspect.EnumType, lambda info: {"type": "string", "enum": [word.value for word in info.cls]}),
)
