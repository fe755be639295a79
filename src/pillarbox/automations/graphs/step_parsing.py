"""Parses the configs of steps (automations.md 3). Unknown members are dropped; the first violation raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar, cast

from pillarbox.automations.graphs.durations import duration, of_seconds
from pillarbox.automations.graphs.graph import (
    MAIL_EVENTS,
    AddToSegment,
    Condition,
    Config,
    ContactDelete,
    ContactUpdate,
    Delay,
    SendEmailStep,
    StepType,
    Trigger,
    WaitForEvent,
)
from pillarbox.automations.graphs.rule_parsing import PROPERTY, rule, value, variable
from pillarbox.automations.graphs.rules import Constant, JsonValue, Scalar, Value
from pillarbox.emails.requests.parse import MOST_SUBJECT
from pillarbox.events.definitions import RESERVED as RESERVED_EVENTS
from pillarbox.events.definitions import event_name
from pillarbox.kernel.wire.json_members import (
    Body,
    Path,
    as_array,
    as_object,
    reference,
    required,
    shown,
    text,
)
from pillarbox.kernel.wire.problems import InvalidField, MissingField
from pillarbox.mail.message.address import AddressError, parse_mailbox
from pillarbox.mail.message.encoded_words import FORBIDDEN
from pillarbox.mail.placeholders.parsing import MOST, RESERVED, has_too_many
from pillarbox.templates.variables import KEY_REASON, wrong

T = TypeVar("T")

MOST_TEMPLATE: Final = 255
MOST_NAME: Final = 255
MOST_REPLY_TO: Final = 50


def config(kind: StepType, given: object, path: Path) -> Config:
    """Return the parsed config of a step of that type; `path` names the config in errors."""
    if given is None and kind == "contact_delete":
        return ContactDelete()
    if given is None:
        raise MissingField(path)
    return _READERS[kind](as_object(given, path), path)


def _trigger(body: Body, path: Path) -> Trigger:
    return Trigger(_event_name(body, path))


def _delay(body: Body, path: Path) -> Delay:
    if body.get("duration") is None and body.get("seconds") is not None:
        return Delay(of_seconds(body["seconds"], f"{path}.seconds"))
    return Delay(duration(required(body, "duration", path), f"{path}.duration"))


def _send_email(body: Body, path: Path) -> SendEmailStep:
    inside = f"{path}.template"
    template = as_object(required(body, "template", path), inside)
    name = text(required(template, "id", inside), f"{inside}.id", MOST_TEMPLATE).strip()
    return SendEmailStep(
        template=name,
        variables=_given(template, "variables", inside, _variables),
        subject=_given(body, "subject", path, _subject),
        sender=_given(body, "from", path, _mailbox),
        reply_to=_given(body, "reply_to", path, _reply_to),
        topic_id=_given(body, "topic_id", path, reference),
    )


def _wait_for_event(body: Body, path: Path) -> WaitForEvent:
    return WaitForEvent(
        _awaited_name(body, path),
        _given(body, "timeout", path, duration),
        _given(body, "filter_rule", path, lambda found, where: rule(found, where, ("event",))),
    )


def _condition(body: Body, path: Path) -> Condition:
    return Condition(rule(body, path))


def _contact_update(body: Body, path: Path) -> ContactUpdate:
    found = ContactUpdate(
        first_name=_changed(body, "first_name", path, _name),
        last_name=_changed(body, "last_name", path, _name),
        unsubscribed=_changed(body, "unsubscribed", path, _unsubscribed),
        properties=_given(body, "properties", path, _properties),
    )
    if found == ContactUpdate():
        raise MissingField(f"{path}.first_name")
    return found


def _contact_delete(_: Body, __: Path) -> ContactDelete:
    return ContactDelete()


def _add_to_segment(body: Body, path: Path) -> AddToSegment:
    return AddToSegment(reference(required(body, "segment_id", path), f"{path}.segment_id"))


_READERS: Final[dict[StepType, Callable[[Body, Path], Config]]] = {
    "trigger": _trigger,
    "delay": _delay,
    "send_email": _send_email,
    "wait_for_event": _wait_for_event,
    "condition": _condition,
    "contact_update": _contact_update,
    "contact_delete": _contact_delete,
    "add_to_segment": _add_to_segment,
}

TYPES: Final = cast(tuple[StepType, ...], tuple(_READERS))


# Members ------------------------------------------------------------------------------------------


def _given(body: Body, name: str, path: Path, reader: Callable[[object, Path], T]) -> T | None:
    """Return an optional member; null and nothing are the same as absent."""
    found = body.get(name)
    return None if found is None or found == "" else reader(found, f"{path}.{name}")


def _changed(body: Body, name: str, path: Path, reader: Callable[[object, Path], Value]) -> Value | None:
    """Return a member that changes something; null is a value."""
    return reader(body[name], f"{path}.{name}") if name in body else None


def _event_name(body: Body, path: Path) -> str:
    where = f"{path}.event_name"
    return event_name(text(required(body, "event_name", path), where), where)


def _awaited_name(body: Body, path: Path) -> str:
    where = f"{path}.event_name"
    name = text(required(body, "event_name", path), where).strip()
    if name.startswith(RESERVED_EVENTS) and name not in MAIL_EVENTS:
        allowed = ", ".join(f"`{known}`" for known in MAIL_EVENTS)
        raise InvalidField(where, f"Events of mail are {allowed}.")
    return name if name in MAIL_EVENTS else event_name(name, where)


def _subject(value: object, path: Path) -> str:
    subject = text(value, path, MOST_SUBJECT)
    if FORBIDDEN.search(subject):
        raise InvalidField(path, "Line breaks and control characters are not allowed.")
    if has_too_many(subject):
        raise InvalidField(path, f"Use at most {MOST} placeholders.")
    return subject


def _mailbox(value: object, path: Path) -> str:
    try:
        parse_mailbox(text(value, path))
    except AddressError as refused:
        raise InvalidField(path, refused.reason) from None
    return cast(str, value).strip()


def _reply_to(value: object, path: Path) -> tuple[str, ...] | str | None:
    if isinstance(value, str):
        return _mailbox(value, path)
    items = as_array(value, path, MOST_REPLY_TO)
    return tuple(_mailbox(item, f"{path}[{index}]") for index, item in enumerate(items)) or None


def _variables(members: object, path: Path) -> tuple[tuple[str, Value], ...]:
    """Return the variables of a mail; a null is left out, as in a request that sends mail."""
    known = []
    for key, given in as_object(members, path).items():
        where = f"{path}.{shown(key)}"
        if PROPERTY.fullmatch(key) is None:
            raise InvalidField(where, KEY_REASON)
        if key in RESERVED:
            raise InvalidField(where, f"`{key}` is reserved.")
        if given is not None:
            known.append((key, _checked(variable(given, where), where)))
    return tuple(known)


def _properties(members: object, path: Path) -> tuple[tuple[str, Value], ...] | None:
    known = []
    for key, given in as_object(members, path).items():
        where = f"{path}.{shown(key)}"
        if PROPERTY.fullmatch(key) is None:
            raise InvalidField(where, KEY_REASON)
        known.append((key, _checked(value(given, where), where)))
    return tuple(known) or None


def _checked(value: Value, path: Path) -> Value:
    """Return the value, if a variable or a property can have it."""
    constant = _text_of(value) if isinstance(value, JsonValue | Constant) else None
    if constant is None or isinstance(constant, bool):
        return value
    reason = wrong(constant, "string" if isinstance(constant, str) else "number")
    if reason is not None:
        raise InvalidField(path, reason)
    return value


def _text_of(value: Constant | JsonValue) -> Scalar:
    return value.text if isinstance(value, JsonValue) else value.value


def _name(given_name: object, path: Path) -> Value:
    known = value(given_name, path)
    if isinstance(known, Constant) and known.value is not None:
        text(known.value, path, MOST_NAME)
    return known


def _unsubscribed(members: object, path: Path) -> Value:
    known = value(members, path)
    if isinstance(known, Constant) and not isinstance(known.value, bool):
        raise InvalidField(path, "It must be `true` or `false`.")
    return known
