"""Blocks as fields of forms: every value is a text there, with and without a script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

FieldKind = Literal["line", "text", "code", "link", "picture", "number", "choice", "flag", "links"]


class BlockField(NamedTuple):
    """One field of a block in its form."""

    name: str
    kind: FieldKind
    choices: tuple[str, ...] = ()
    least: int = 0
    greatest: int = 0


ALIGN: Final = BlockField("align", "choice", ("left", "center", "right"))

FIELDS: Final[Mapping[str, tuple[BlockField, ...]]] = {
    "heading": (BlockField("text", "line"), BlockField("level", "choice", ("1", "2", "3")), ALIGN),
    "text": (BlockField("text", "text"), ALIGN, BlockField("panel", "flag")),
    "image": (
        BlockField("src", "picture"),
        BlockField("alt", "line"),
        BlockField("href", "link"),
        BlockField("width", "number", greatest=1200),
        ALIGN,
    ),
    "button": (BlockField("text", "line"), BlockField("href", "link"), ALIGN, BlockField("wide", "flag")),
    "columns": (BlockField("count", "choice", ("2", "3", "4")), BlockField("panel", "flag")),
    "divider": (),
    "spacer": (BlockField("height", "number", least=4, greatest=160),),
    "quote": (BlockField("text", "text"), BlockField("by", "line")),
    "code": (BlockField("text", "code"),),
    "social": (BlockField("links", "links"), ALIGN),
    "footer": (BlockField("text", "text"), BlockField("address", "line"), BlockField("unsubscribe", "line")),
    "html": (BlockField("html", "code"),),
}
"""The fields of each type of block, in the order of the forms."""

TYPES: Final = tuple(FIELDS)
TEXT_FIELDS: Final = tuple(
    {
        field.name: None
        for fields in FIELDS.values()
        for field in fields
        if field.kind not in ("choice", "flag", "number")
    }
)
"""Names of the fields that people write texts into."""
IN_COLUMNS: Final = tuple(kind for kind in TYPES if kind not in ("columns", "footer"))

State = dict[str, Any]
"""A block as forms have it: `type`, `fields` of texts, and `columns` of such blocks."""


def state_of(block: Mapping[str, Any]) -> State:
    """Return a block of a document as its form shows it."""
    kind = str(block["type"])
    fields = {field.name: _shown(field, block.get(field.name)) for field in FIELDS[kind]}
    state: State = {"type": kind, "fields": fields}
    if kind == "columns":
        state["columns"] = [[state_of(inner) for inner in column] for column in block["columns"]]
        fields["count"] = str(len(block["columns"]))
    return state


def states_of(document: Mapping[str, Any]) -> list[State]:
    """Return the blocks of a document as forms show them; none for other kinds."""
    return [state_of(block) for block in document.get("blocks", ())]


def block_of(state: Any) -> dict[str, Any]:
    """Return the block that a form says. What is not right in it stays for the document's own check."""
    if not isinstance(state, dict) or state.get("type") not in FIELDS:
        return {"type": "unknown"}
    kind, fields = str(state["type"]), state.get("fields")
    given = fields if isinstance(fields, dict) else {}
    block: dict[str, Any] = {"type": kind}
    for field in FIELDS[kind]:
        text = given.get(field.name)
        if isinstance(text, str) and field.name != "count":
            block[field.name] = _value(field, text)
    if kind == "columns":
        block["columns"] = _columns(state.get("columns"), given.get("count"))
    return block


def new_state(kind: str) -> State:
    """Return a block with nothing in it."""
    columns: dict[str, Any] = {"columns": [[], []]} if kind == "columns" else {}
    defaults: dict[str, Any] = {
        "heading": {"level": 2},
        "image": {"align": "center"},
        "social": {"align": "center"},
        "spacer": {"height": 24},
    }
    return state_of({"type": kind, **columns, **defaults.get(kind, {})})


def _columns(columns: Any, count: Any) -> list[list[dict[str, Any]]]:
    """Return the columns, as many as are wanted; what was in others goes to the last one."""
    given = [
        [block_of(inner) for inner in column]
        for column in (columns if isinstance(columns, list) else ())
        if isinstance(column, list)
    ]
    amount = int(count) if isinstance(count, str) and count in ("2", "3", "4") else max(2, len(given))
    kept = given[:amount] + [[] for _ in range(amount - len(given))]
    for rest in given[amount:]:
        kept[-1] += rest
    return kept


def _shown(field: BlockField, value: Any) -> str:
    if value is None:
        return field.choices[0] if field.choices else str(field.least) if field.kind == "number" else ""
    if field.kind == "flag":
        return "yes" if value else ""
    if field.kind == "links":
        return "\n".join(f"{link.get('name', '')} {link.get('href', '')}".strip() for link in value)
    return str(value)


def _value(field: BlockField, text: str) -> Any:
    if field.kind == "flag":
        return bool(text)
    if field.kind == "number" or field.name == "level":
        return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else field.least
    if field.kind == "links":
        return [_link(line) for line in text.replace("\r", "\n").split("\n") if line.strip()]
    return text.replace("\r\n", "\n")


def _link(line: str) -> dict[str, str]:
    name, _, address = line.strip().rpartition(" ")
    return {"name": name.strip(), "href": address} if name else {"name": "", "href": address}


# Places of blocks ---------------------------------------------------------------------------------


def siblings_of(states: list[State], place: str) -> tuple[list[State], int]:
    """Return the list that the block of a place stands in, and its index there. Raises LookupError.

    A place is `3`, or `3.0.1` for a block in a column.
    """
    numbers = [int(part) for part in place.split(".") if part.isascii() and part.isdigit()]
    if len(numbers) == 1:
        siblings = states
    elif len(numbers) == 3:
        siblings = states[numbers[0]]["columns"][numbers[1]]
    else:
        raise LookupError(place)
    if not 0 <= numbers[-1] <= len(siblings):
        raise LookupError(place)
    return siblings, numbers[-1]


def changed_states(states: list[State], operation: str, place: str, fields: Mapping[str, str]) -> list[State]:
    """Return the blocks after what the form of one block asks for. Raises LookupError for a place that is
    gone."""
    siblings, index = siblings_of(states, place)
    if operation == "add":
        siblings.insert(index, new_state(fields.get("type", "text")))
        return states
    if index >= len(siblings):
        raise LookupError(place)
    state = siblings[index]
    state["fields"] = {field.name: fields.get(field.name, "") for field in FIELDS[state["type"]]}
    if operation == "delete":
        del siblings[index]
    elif operation == "duplicate":
        siblings.insert(index + 1, state_of(block_of(state)))
    elif operation in ("up", "down"):
        other = index + (1 if operation == "down" else -1)
        if 0 <= other < len(siblings):
            siblings[index], siblings[other] = siblings[other], siblings[index]
    return states
