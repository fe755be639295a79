"""Steps and connections as JSON, in requests and in stored versions (automations.md 1 and 2)."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Final, get_args

import msgspec
from msgspec import Meta, Struct

from pillarbox.automations.graphs import step_parsing
from pillarbox.automations.graphs.graph import Outcome, StepType, Trigger
from pillarbox.kernel.wire.fields import ReadFields, Rules, read_by, word_reader
from pillarbox.kernel.wire.json_members import Path, text, word
from pillarbox.kernel.wire.problems import InvalidField

MOST_KEY: Final = 100

_KEY: Final = re.compile(r"[A-Za-z0-9_.-]{1,100}", re.ASCII)

Blank = Meta(extra={"trimmed": True})
"""A text of blanks alone is as good as none."""


def _key(value: object, path: Path) -> str:
    key = text(value, path)
    if _KEY.fullmatch(key) is None:
        reason = f"Use 1 to {MOST_KEY} ASCII letters, digits, underscores, dots and hyphens."
        raise InvalidField(path, reason)
    return key


def _type(value: object, path: Path) -> str:
    return word(value, path, step_parsing.TYPES)


def _any(value: Any, _: Path) -> Any:
    return value


def _configured(read: ReadFields) -> None:
    """Parse the config by the type of its step."""
    read["config"] = step_parsing.config(read["type"], read["config"], f"{read.path}.config")


def _source(read: ReadFields) -> None:
    if read["from_"] not in read.context:
        raise InvalidField(f"{read.path}.from", "There is no step of this key.")


def _target(read: ReadFields) -> None:
    target = read.context.get(read["to"])
    if target is None:
        raise InvalidField(f"{read.path}.to", "There is no step of this key.")
    if isinstance(target.config, Trigger):
        raise InvalidField(f"{read.path}.to", "Nothing leads to a trigger.")
    if read["from_"] == read["to"]:
        raise InvalidField(f"{read.path}.to", "A step cannot lead to itself.")


KeyPattern = Annotated[str, Meta(pattern=f"^[A-Za-z0-9_.-]{{1,{MOST_KEY}}}$")]
Key = Annotated[KeyPattern, Blank, read_by(_key)]
KnownKey = Annotated[KeyPattern, Blank, read_by(text)]
Config = Annotated[
    Any, Meta(extra_json_schema={"type": "object", "description": "What it has depends on `type`."})
]


class AutomationStep(Struct, kw_only=True):
    rules: ClassVar[Rules] = {"config": _configured}

    key: Key
    type: Annotated[StepType, Blank, read_by(_type)]
    config: Annotated[Config, read_by(_any, absent=True)]


class AutomationConnection(Struct, kw_only=True):
    # The context of its rules are the steps by their keys.
    rules: ClassVar[Rules] = {"from": _source, "to": _target}

    from_: KnownKey = msgspec.field(name="from")
    to: KnownKey
    type: Annotated[Outcome, read_by(word_reader(get_args(Outcome)))] = "default"
