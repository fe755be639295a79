"""Shapes of the API keys endpoints (api-keys.md sections 1 to 5)."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal
from uuid import UUID

from msgspec import Meta, Struct

from pillarbox.api_keys.keys import InboxLimit
from pillarbox.api_keys.queries import ApiKeyListRow
from pillarbox.kernel.security.authentication import InboxRight
from pillarbox.kernel.wire.fields import ReadFields, Rules, parse_value
from pillarbox.kernel.wire.instants import DatabaseTime
from pillarbox.kernel.wire.problems import MissingField
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


RightName = Literal["read", "label", "draft", "send"]


def _rights_of_inbox(read: ReadFields) -> None:
    """Refuse rights without an inbox, and an inbox without rights."""
    if read.get("inbox_id") is None and read.get("rights") is not None:
        raise MissingField("inbox_id")
    if read.get("inbox_id") is not None and read.get("rights") is None:
        raise MissingField("rights")


class NewApiKey(Struct, kw_only=True):
    """`domain_id` is read only with `sending_access`; otherwise it may be anything. `inbox_id` and `rights`
    come together; with them the key is for this inbox alone, whatever `permission` is."""

    name: Name
    permission: PermissionName = "full_access"
    domain_id: DomainId = None
    inbox_id: UUID | None = None
    rights: Annotated[list[RightName], Meta(min_length=1, max_length=16)] | None = None

    rules: ClassVar[Rules] = {"domain_id": _domain_of_sending, "rights": _rights_of_inbox}

    def inbox(self) -> InboxLimit | None:
        """Return the inbox that the key is for; None for a key of the whole team."""
        if self.inbox_id is None:
            return None
        return InboxLimit(self.inbox_id, frozenset([InboxRight(name) for name in self.rights or ()]))


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
