"""Example values for schemas of the OpenAPI document: those that a schema names, else made of its type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from pillarbox.dashboard.docs.shapes import Schema, resolved

ID: Final = "0199b2c4-7a10-7c3e-9f51-2d8e6b4a1c05"
DEEPEST: Final = 8

BY_NAME: Final[Mapping[str, Any]] = {
    "from": "Harbor <hello@harbor.example>",
    "from_name": "Harbor",
    "to": "ada@quay.example",
    "cc": "ben@quay.example",
    "bcc": "cy@quay.example",
    "reply_to": "help@harbor.example",
    "email": "ada@quay.example",
    "emails": "ada@quay.example",
    "recipient": "ada@quay.example",
    "subject": "Your invoice",
    "html": "<p>Thank you for your order.</p>",
    "text": "Thank you for your order.",
    "first_name": "Ada",
    "last_name": "Quill",
    "endpoint": "https://harbor.example/hooks",
    "filename": "invoice.pdf",
    "content_type": "application/pdf",
    "content": "JVBERi0xLjc=",
    "region": "us-east-1",
    "scheduled_at": "in 1 hour",
    "message_id": "<0199b2c4@harbor.example>",
    "url": "https://harbor.example/",
    "download_url": "https://harbor.example/files/…",
    "tracking_subdomain": "links",
    "domain": "harbor.example",
    "color": "teal",
    "user_agent": "harbor/1.0",
    "token": "re_…",
    "signing_secret": "whsec_…",
    "description": "What it is for",
    "message": "The message says what is wrong.",
    "username": "help",
    "key": "plan",
    "alias": "invoice",
    "preview_text": "Thank you for your order",
    "duration": "1 day",
    "event": "order.paid",
    "labels": "urgent",
}
"""Values by the name of their field, where their schema takes them."""

BY_SHAPE: Final[Mapping[str, Mapping[str, Any]]] = {
    "Error": {"statusCode": 422, "message": "The message says what is wrong.", "name": "validation_error"},
    "NewApiKey": {"name": "production"},
    "RenamedApiKey": {"name": "production"},
    "ClientRegistration": {
        "client_name": "Quill",
        "redirect_uris": ["https://quill.example/callback"],
    },
    "TokenRequest": {
        "code": "…",
        "redirect_uri": "https://quill.example/callback",
        "code_verifier": "…",
        "client_id": ID,
    },
    "RevocationRequest": {"token": "…"},
    "NewDomain": {"name": "harbor.example"},
    "NewClaim": {"name": "harbor.example"},
    "NewWebhook": {
        "endpoint": "https://harbor.example/hooks",
        "events": ["email.delivered", "email.bounced"],
    },
    "ChangedWebhook": {"endpoint": "https://harbor.example/hooks"},
    "NamedSegment": {"name": "Readers"},
    "NewTopic": {"name": "News"},
    "ChangedTopic": {"name": "News"},
    "NewTemplate": {"name": "Invoice"},
    "ChangedTemplate": {"subject": "Your invoice"},
    "NewBroadcast": {"name": "News of October", "subject": "News of October"},
    "ChangedBroadcast": {"subject": "News of October"},
    "PreviewBroadcast": {"contact": "ada@quay.example"},
    "NewAutomation": {
        "name": "Thanks for an order",
        "steps": [
            {"key": "start", "type": "trigger", "config": {"event_name": "order.paid"}},
            {"key": "wait", "type": "delay", "config": {"duration": "1 day"}},
        ],
        "connections": [{"from": "start", "to": "wait"}],
    },
    "ChangedAutomation": {"name": "Thanks for an order"},
    "NewDefinition": {"name": "order.paid", "schema": {"amount": "number"}},
    "NewInbox": {"email_address": "help@harbor.example"},
    "AgentChange": {"instructions": "Answer in one sentence."},
    "NewLabel": {"name": "urgent"},
    "LabelChange": {"name": "urgent"},
}
"""Values by the name of a shape and that of its field."""

MORE_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "SendEmail": ("from", "subject", "html"),
    "BatchedEmail": ("from", "subject", "html"),
    "NewBroadcast": ("name", "segment_id", "html"),
    "ChangedBroadcast": ("subject",),
    "ChangedTemplate": ("subject",),
    "ChangedDomain": ("click_tracking",),
    "NewContact": ("first_name",),
    "NewTemplate": ("subject",),
    "NewDefinition": ("schema",),
    "NewDraft": ("subject", "text", "to"),
    "TokenRequest": ("code", "redirect_uri", "code_verifier", "client_id"),
}
"""Fields of requests that are not required and belong to an example all the same."""

BY_FORMAT: Final[Mapping[str, Any]] = {
    "uuid": ID,
    "date-time": "2026-10-03T08:15:00.512Z",
    "date": "2026-10-03",
    "email": "ada@quay.example",
    "uri": "https://harbor.example/",
    "binary": "…",
}

BY_PATTERN: Final[Mapping[str, str]] = {
    "^msg_": "msg_2xKqT7bWcVhN0aLrZ5mYpE8dJ1f",
    "^atmpt_": "atmpt_2xKqT7bWcVhN0aLrZ5mYpE8dJ1f",
}
"""Values by the beginning of a pattern."""


def example_of(schema: Schema, components: Mapping[str, Schema], name: str = "", *, is_request: bool) -> Any:
    """Return a value that the schema takes. Of a request it has the required fields, and at least one."""
    return _Examples(components, is_request=is_request).value(schema, name, 0)


class _Examples:
    def __init__(self, components: Mapping[str, Schema], *, is_request: bool) -> None:
        self._components = components
        self._is_request = is_request

    def value(self, schema: Schema, name: str, depth: int) -> Any:
        target, shape = resolved(schema, self._components)
        if "anyOf" in target:
            return self.value(self._best(target["anyOf"]), name, depth)
        if "const" in target:
            return target["const"]
        if words := [word for word in target.get("enum", ()) if word is not None]:
            return words[0]
        if examples := target.get("examples"):
            return examples[0]
        kind = target.get("type")
        if isinstance(kind, list):
            kind = next(word for word in kind if word != "null")
        return (
            self._object(target, shape, depth)
            if _is_object(kind, target)
            else self._typed(kind, target, name, depth)
        )

    def _best(self, choices: list[Schema]) -> Schema:
        """Return the first choice that is not null, a text before others."""
        others = [choice for choice in choices if choice.get("type") != "null"]
        return next((choice for choice in others if choice.get("type") == "string"), others[0])

    def _typed(self, kind: str | None, schema: Schema, name: str, depth: int) -> Any:
        if kind == "array":
            if depth >= DEEPEST and not schema.get("minItems"):
                return []
            return [self.value(schema.get("items", {}), name, depth + 1)] * max(1, schema.get("minItems", 1))
        if kind == "boolean":
            return True
        if kind in ("integer", "number"):
            return max(schema.get("minimum", 1), min(1, schema.get("maximum", 1)))
        if kind == "null":
            return None
        return self._text(schema, name)

    def _object(self, schema: Schema, shape: str, depth: int) -> dict[str, Any]:
        fields, required = schema.get("properties", {}), schema.get("required", ())
        if not fields:
            inner = schema.get("additionalProperties")
            return {"plan": self.value(inner, "", depth + 1)} if isinstance(inner, Mapping) and inner else {}
        own = BY_SHAPE.get(shape, {})
        return {
            name: own[name] if name in own else self.value(fields[name], name, depth + 1)
            for name in self._names(schema, shape, depth)
            if depth < DEEPEST or name in required
        }

    def _names(self, schema: Schema, shape: str, depth: int) -> list[str]:
        """Return the fields that the example has."""
        fields, required = list(schema["properties"]), schema.get("required", ())
        if not self._is_request:
            return fields
        chosen = {*required, *MORE_FIELDS.get(shape, ())}
        least = max(1 if depth == 0 else 0, schema.get("minProperties", 0))
        chosen |= set([name for name in fields if name not in chosen][: max(0, least - len(chosen))])
        return [name for name in fields if name in chosen]

    def _text(self, schema: Schema, name: str) -> str:
        if schema.get("format") in BY_FORMAT:
            return str(BY_FORMAT[schema["format"]])
        pattern = schema.get("pattern", "")
        if known := [value for beginning, value in BY_PATTERN.items() if pattern.startswith(beginning)]:
            return known[0]
        text = "Harbor" if name == "name" else str(BY_NAME.get(name, "example"))
        if pattern and not re.search(pattern, text):
            text = "example"
        limit = schema.get("maxLength", len(text))
        return text[:limit].ljust(schema.get("minLength", 0), "x")


def _is_object(kind: str | None, schema: Schema) -> bool:
    return kind == "object" or "properties" in schema
