"""Shapes of the API keys endpoints (api-keys.md sections 1 to 5)."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal
from uuid import UUID

from msgspec import Meta, Struct

from pillarbox.api_keys.queries import ApiKeyListRow
from pillarbox.kernel.wire.fields import ReadFields, Rules, parse_value
from pillarbox.kernel.wire.instants import DatabaseTime
from pillarbox.kernel.wire.shapes import from_row

Name = Annotated[str, Meta(max_length=50, extra={"empty": True})]
PermissionName = Annotated[
    Literal["full_access", "sending_access"], Meta(extra={"problem": "invalid_access"})
]


def _domain_of_sending(read: ReadFields) -> None:
    """Read the id of the domain only with the permission to send: with another one it is as good as none."""
    given = read.pop("domain_id", None)
    if given is not None and read.get("permission") == "sending_access":
        read["domain_id"] = parse_value(UUID, given, "domain_id")


DomainId = Annotated[
    Any,
    Meta(
        extra_json_schema={
            "anyOf": [
                {"type": "string", "format": "uuid"},
                {"type": "null"},
                {"description": "With `full_access` it is not read."},
            ]
        }
    ),
]


class NewApiKey(Struct, kw_only=True):
    """`domain_id` is read only with `sending_access`; otherwise it may be anything."""

    name: Name
    permission: PermissionName = "full_access"
    domain_id: DomainId = None

    rules: ClassVar[Rules] = {"domain_id": _domain_of_sending}


class RenamedApiKey(Struct, kw_only=True):
    name: Name


class CreatedApiKey(Struct, kw_only=True):
    id: UUID
    token: str


class ApiKeyItem(Struct, kw_only=True):
    id: UUID
    name: str
    created_at: DatabaseTime
    last_used_at: DatabaseTime | None


class ApiKeyChanged(Struct, kw_only=True):
    object: Literal["api_key"]
    id: UUID


class ApiKeyDeleted(Struct, kw_only=True):
    object: Literal["api_key"]
    id: UUID
    deleted: Literal[True]


def item(key: ApiKeyListRow) -> ApiKeyItem:
    """Return a key as the list shows it."""
    return from_row(ApiKeyItem, key)
