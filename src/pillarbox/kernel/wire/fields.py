"""From a parsed JSON body to a struct, with the messages of conventions section 5.

`parse(Type, body)` reads the fields in the order of the struct and answers the first violation:

- a field without default is required: absent, null or "" is ``Missing `x` field.``;
- `T | None = None` is optional, and null is the same as absent;
- `T | UnsetType = UNSET` is optional in a PATCH, where null is invalid;
- `T | None | UnsetType = UNSET` is optional in a PATCH, where null clears.

No value is coerced and unknown keys are ignored. `Meta` limits lengths (in code points), sizes and patterns
(which must match the whole text); its `extra` may hold `empty` (True: "" is a value of a required text),
`trimmed` (True: blanks around a text are taken away first, and a required one of nothing else is missing);
`problem` (the wire name of a violation instead of `validation_error`); and `reason` (the sentence of a
violation). A UUID names another resource: a malformed one is 422 `invalid_parameter` (contract decision 3).

What a type and these limits do not say is declared at the struct too (docs/decisions/0162):

- `read_by(reader)` at a field: its value is what this function makes of the JSON value;
- `read_before(name)` at a field: it is read before the field of that name, wherever it stands;
- `rules`, a class attribute: functions of the fields read so far, each called after the field of its key;
- `check_body`, a static method: it gets the whole body before a field is read;
- `missing_first`, a class attribute: with True, absent required fields are named before other violations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar, cast
from uuid import UUID

from msgspec import NODEFAULT, Meta, inspect

from pillarbox.kernel.wire.problems import Invalid, InvalidField, MissingField, NotAUuid, Problem
from pillarbox.kernel.wire.uuids import well_formed

T = TypeVar("T")

Reader = Callable[[Any, str], Any]


class ReadFields(dict[str, Any]):
    """Fields that have been read, by their names in Python; a rule may put another value in the place of one.
    `path` is where their object stands in the body, `context` what the caller of `parse` knows besides."""

    __slots__ = ("context", "path")

    def __init__(self, path: str, context: Any) -> None:
        super().__init__()
        self.path = path
        self.context = context


Rules = Mapping[str, Callable[[ReadFields], None]]
_ABSENT: Any = object()

NOT_AN_OBJECT = "The request body must be an object."


class NamedInvalidField(Problem):
    """A violation that has a wire name of its own (`invalid_access`, `invalid_region`)."""

    status = 422

    def __init__(self, name: str, field: str, reason: str) -> None:
        super().__init__(f"Invalid `{field}` field. {reason}")
        self.name = name


def read_by(reader: Reader, *, absent: bool = False, empty: bool = False) -> Meta:
    """Return metadata for `Annotated`: the field is what `reader(value, path)` makes of it, or refuses.

    With `absent` the reader is called with None where the field is absent or null, and decides what it means.
    With `empty` it gets "" too, which otherwise is as none in a required field.
    """
    return Meta(extra={"reader": reader, "absent": absent, "reads_empty": empty})


def read_before(name: str) -> Meta:
    """Return metadata for `Annotated`: the field is read before the one that the wire calls `name`."""
    return Meta(extra={"before": name})


def parse(kind: type[T], body: Any, path: str = "", context: Any = None) -> T:
    """Return the body as a `kind`; raise the first violation in the order of its fields. `path` is where it
    stands in a body, if it is a part of one; `context` is for the rules of the struct itself."""
    found: T = _struct_reader(cast(Any, kind))(body, path, context)
    return found


def parse_value(kind: Any, value: Any, path: str = "") -> Any:
    """Return a value as `parse` does, of a type that is no struct: a list, a UUID, a type
    with `Annotated`."""
    return _type_reader(kind)(value, path)


def words(allowed: Sequence[object]) -> str:
    """Return a sentence that names the allowed values."""
    shown = [f"`{word}`" for word in allowed]
    return "Use " + (f"{', '.join(shown[:-1])} or {shown[-1]}" if len(shown) > 1 else shown[0]) + "."


# Structs ------------------------------------------------------------------------------------------


@cache
def _type_reader(kind: Any) -> Reader:
    return _reader(inspect.type_info(kind))


@cache
def _struct_reader(kind: Any) -> Callable[[Any, str, Any], Any]:
    return _of_struct(inspect.type_info(kind))


def _of_struct(info: Any) -> Callable[..., Any]:
    fields = _in_order(info.fields)
    kind = info.cls
    rules: Rules = getattr(kind, "rules", {})
    if unknown := rules.keys() - {field.encode_name for field in fields}:
        raise TypeError(f"{kind.__name__} has rules after {unknown}, which are no fields")
    entries = [
        (field.encode_name, field.name, *_field_reader(field), rules.get(field.encode_name))
        for field in fields
    ]
    check_body = getattr(kind, "check_body", None)
    looked_for = [
        (field.encode_name, _required(_unread, _extra(field.type)))
        for field in fields
        if field.required and getattr(kind, "missing_first", False)
    ]

    def read(value: Any, path: str, context: Any = None) -> Any:
        if not isinstance(value, dict):
            raise InvalidField(path, "It must be an object.") if path else Invalid(NOT_AN_OBJECT)
        if check_body is not None:
            check_body(value)
        prefix = f"{path}." if path else ""
        for wire_name, look in looked_for:
            look(value.get(wire_name), prefix + wire_name)
        found: Any = ReadFields(path, context) if rules else {}
        for wire_name, name, reader, has_default, rule in entries:
            given = value.get(wire_name, _ABSENT)
            if not has_default or (given is not None and given is not _ABSENT):
                taken = reader(given, prefix + wire_name)
                if taken is not _ABSENT:
                    found[name] = taken
            if rule is not None:
                rule(found)
        return kind(**found)

    return read


def _in_order(fields: Sequence[Any]) -> list[Any]:
    """Return the fields in the order in which they are read."""
    ordered = [field for field in fields if "before" not in _extra(_without_null(field.type)[0])]
    for field in fields:
        if before := _extra(_without_null(field.type)[0]).get("before"):
            ordered.insert([one.encode_name for one in ordered].index(before), field)
    return ordered


def _field_reader(field: Any) -> tuple[Reader, bool]:
    """Return the reader of the field, and whether its default replaces null and an absent field."""
    kind, nullable = _without_null(field.type)
    reader, extra = _reader(kind), _extra(kind)
    if extra.get("absent"):
        return (lambda value, path: reader(None if value is _ABSENT else value, path)), False
    if field.required:
        return _required(reader, extra), False
    unset = field.default is NODEFAULT and field.default_factory is NODEFAULT
    if unset and nullable:
        return (
            lambda value, path: value if value is _ABSENT or value is None else reader(value, path)
        ), False
    if unset:
        return (lambda value, path: value if value is _ABSENT else reader(value, path)), False
    return reader, True


def _required(reader: Reader, extra: dict[str, Any]) -> Reader:
    takes_empty = bool(extra.get("empty") or extra.get("reads_empty"))
    trimmed = bool(extra.get("trimmed"))

    def read(value: Any, path: str) -> Any:
        blank = value == "" or (trimmed and type(value) is str and not value.strip())
        if value is _ABSENT or value is None or (blank and not takes_empty):
            raise MissingField(path)
        return reader(value, path)

    return read


def _unread(value: Any, _: str) -> Any:
    return value


def _without_null(info: Any) -> tuple[Any, bool]:
    """Return the type beside null in a union, and whether null was in it."""
    if not isinstance(info, inspect.UnionType):
        return info, False
    kinds = [kind for kind in info.types if not isinstance(kind, inspect.NoneType)]
    nullable = len(kinds) < len(info.types)
    return (kinds[0] if len(kinds) == 1 else inspect.UnionType(tuple(kinds))), nullable


def _extra(info: Any) -> dict[str, Any]:
    return dict(info.extra or {}) if isinstance(info, inspect.Metadata) else {}


# One value ----------------------------------------------------------------------------------------


def _reader(info: Any) -> Reader:
    if isinstance(info, inspect.Metadata):
        if own := _extra(info).get("reader"):
            return own  # type: ignore[no-any-return]
        return _renamed(_trimmed(_reader(info.type), _extra(info)), _extra(info))
    for kind, make in _READERS:
        if isinstance(info, kind):
            return make(info)
    raise TypeError(f"no reader for {info}")


def _renamed(reader: Reader, extra: dict[str, Any]) -> Reader:
    """Return the reader with its violations under another wire name or with another sentence."""
    if "problem" not in extra and "reason" not in extra:
        return reader

    def read(value: Any, path: str) -> Any:
        try:
            return reader(value, path)
        except InvalidField as violation:
            own = str(violation.message).partition("field. ")[2]
            reason = extra.get("reason", own)
            name = extra.get("problem", violation.name)
        raise NamedInvalidField(name, path, reason)

    return read


def _trimmed(reader: Reader, extra: dict[str, Any]) -> Reader:
    """Return the reader for a text without the blanks around it."""
    if not extra.get("trimmed"):
        return reader
    return lambda value, path: reader(value.strip() if type(value) is str else value, path)


def _text(*, least: int | None = None, limit: int | None = None, pattern: str | None = None) -> Reader:
    matcher = re.compile(pattern, re.ASCII) if pattern else None

    def read(value: Any, path: str) -> str:
        if type(value) is not str:
            raise InvalidField(path, "It must be a string.")
        if limit is not None and len(value) > limit:
            raise InvalidField(path, f"Use at most {limit} characters.")
        if least is not None and len(value) < least:
            raise InvalidField(path, f"Use at least {least} character{'s' * (least > 1)}.")
        if matcher is not None and matcher.fullmatch(value) is None:
            raise InvalidField(path, "It does not have the form that is asked for.")
        return value

    return read


def _number(info: Any) -> Reader:
    kinds = (int,) if isinstance(info, inspect.IntType) else (int, float)
    wanted = "an integer" if kinds == (int,) else "a number"

    def read(value: Any, path: str) -> Any:
        if type(value) not in kinds:
            raise InvalidField(path, f"It must be {wanted}.")
        if (info.ge is not None and value < info.ge) or (info.le is not None and value > info.le):
            raise InvalidField(path, f"Use {wanted} from {info.ge} to {info.le}.")
        return value

    return read


def _boolean(value: Any, path: str) -> bool:
    if type(value) is not bool:
        raise InvalidField(path, "It must be `true` or `false`.")
    return value


def _uuid(value: Any, path: str) -> UUID:
    if type(value) is not str or not well_formed(value):
        raise NotAUuid(path)
    return UUID(value)


def word_reader(allowed: Sequence[object]) -> Reader:
    """Return a reader of one of these words. A violation names them in this order; a `Literal` by itself in
    that of the alphabet."""

    def read(value: Any, path: str) -> Any:
        if not isinstance(value, str | int) or type(value) is bool or value not in allowed:
            raise InvalidField(path, words(allowed))
        return value

    return read


def _enum(info: Any) -> Reader:
    member = word_reader([item.value for item in info.cls])
    return lambda value, path: info.cls(member(value, path))


def _list(info: Any) -> Reader:
    reader = _reader(info.item_type)

    def read(value: Any, path: str) -> list[Any]:
        if type(value) is not list:
            raise InvalidField(path, "It must be an array.")
        if info.max_length is not None and len(value) > info.max_length:
            raise InvalidField(path, f"Use at most {info.max_length} items.")
        if info.min_length is not None and len(value) < info.min_length:
            raise InvalidField(path, f"Use at least {info.min_length} item{'s' * (info.min_length > 1)}.")
        return [reader(item, f"{path}[{index}]") for index, item in enumerate(value)]

    return read


def _dict(info: Any) -> Reader:
    reader = _reader(info.value_type)

    def read(value: Any, path: str) -> dict[str, Any]:
        if type(value) is not dict:
            raise InvalidField(path, "It must be an object.")
        if info.max_length is not None and len(value) > info.max_length:
            raise InvalidField(path, f"Use at most {info.max_length} entries.")
        return {key: reader(item, f"{path}.{key[:50]}") for key, item in value.items()}

    return read


def _union(info: Any) -> Reader:
    readers = [(_reader(kind), *_json_types(kind)) for kind in info.types]
    wanted = " or ".join(dict.fromkeys(name for _, _, name in readers))

    def read(value: Any, path: str) -> Any:
        told: Problem | None = None
        for reader, types, _ in readers:
            try:
                return reader(value, path)
            except Problem as violation:
                if type(value) in types:
                    told = violation
        raise told or InvalidField(path, f"It must be {wanted}.")

    return read


def _json_types(info: Any) -> tuple[tuple[type[Any], ...], str]:
    """Return the types of the JSON values that a reader is for, and what they are called."""
    plain = info.type if isinstance(info, inspect.Metadata) else info
    return next((types, name) for kind, types, name in _JSON_TYPES if isinstance(plain, kind))


_JSON_TYPES: tuple[tuple[Any, tuple[type[Any], ...], str], ...] = (
    (inspect.ListType, (list,), "an array"),
    (inspect.DictType | inspect.StructType, (dict,), "an object"),
    (inspect.IntType | inspect.FloatType, (int, float), "a number"),
    (inspect.BoolType, (bool,), "`true` or `false`"),
    (object, (str,), "a string"),
)

_READERS: tuple[tuple[type[Any], Callable[[Any], Reader]], ...] = (
    (
        inspect.StrType,
        lambda info: _text(least=info.min_length, limit=info.max_length, pattern=info.pattern),
    ),
    (inspect.BoolType, lambda _: _boolean),
    (inspect.IntType, _number),
    (inspect.FloatType, _number),
    (inspect.UUIDType, lambda _: _uuid),
    (inspect.LiteralType, lambda info: word_reader(info.values)),
    (inspect.EnumType, _enum),
    (inspect.ListType, _list),
    (inspect.DictType, _dict),
    (inspect.StructType, _of_struct),
    (inspect.UnionType, _union),
    (inspect.AnyType, lambda _: lambda value, _path: value),
)
