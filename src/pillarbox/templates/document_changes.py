"""Documents of templates: reading and storing one. A revision keeps two people from losing changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import islice
from typing import Any, Final
from uuid import UUID

import msgspec

from pillarbox.documents import source
from pillarbox.documents.blocks import Document
from pillarbox.documents.rendering import DocumentRendering, RenderedDocument
from pillarbox.documents.team_theme import theme_of
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.problems import Conflict, NotFound
from pillarbox.mail.placeholders.parsing import CONTACT_PATH, MOST, RESERVED, placeholders
from pillarbox.templates import queries
from pillarbox.templates.changes import TemplateChanges, template_of
from pillarbox.templates.content import TemplateContent
from pillarbox.templates.queries import ListedVersion, Template, TemplateReference
from pillarbox.templates.variables import Variable
from pillarbox.templates.wire import ChangedTemplate, NewVariable

REVISION: Final = 32
"""Characters of a revision."""


class OtherRevision(Conflict):
    """The template has changed since it was read (409)."""

    def __init__(self) -> None:
        super().__init__("The template has changed since you read it. Read it again, then change it.")


@dataclass(frozen=True, slots=True)
class TemplateDocument:
    """A template with its document, and the revision that stands for all that can be edited."""

    template: Template
    document: Document
    revision: str


@dataclass(frozen=True, slots=True)
class TemplateDocuments:
    """Reads and stores documents of templates."""

    changes: TemplateChanges
    rendering: DocumentRendering

    async def read(self, db: TeamDb, name: TemplateReference) -> TemplateDocument:
        """Return the template with its document; 404 where there is none."""
        return with_document(await template_of(db, name))

    async def render(self, db: TeamDb, document: Document) -> RenderedDocument:
        """Return the mail of a document in the team's theme."""
        return await self.rendering.render(db.team_id, document, await theme_of(db))

    async def save(
        self,
        db: TeamDb,
        name: TemplateReference,
        document: Document,
        fields: Mapping[str, Any],
        revision: str | None,
    ) -> TemplateDocument:
        """Store the document, what is made of it, and these other fields; raises OtherRevision where the
        template has another revision than the one that is named.

        A variable that is used and not declared is declared as a string without a fallback. `db` is outside
        of a transaction: rendering must not hold one.
        """
        rendered = await self.render(db, document)
        async with db.transaction() as inner:
            if await queries.lock(inner, name) is None:
                raise NotFound("Template")
            before = with_document(await template_of(inner, name))
            if revision is not None and revision != before.revision:
                raise OtherRevision
            changed = ChangedTemplate(**fields, html=rendered.html, text=rendered.text)
            declared = _declared(before.template.content, changed)
            changed = msgspec.structs.replace(changed, variables=declared)
            kept = source.stored(document, rendered.html)
            await self.changes.change(inner, name, changed, kept)
            return await self.read(inner, TemplateReference(before.template.id, None))

    async def versions(self, db: TeamDb, name: TemplateReference) -> Sequence[ListedVersion]:
        """Return the versions of a template, the newest first."""
        return await queries.versions(db, (await template_of(db, name)).id)

    async def version(self, db: TeamDb, template_id: UUID, version_id: UUID) -> TemplateContent:
        """Return the content of a version; 404 where there is none."""
        content = await queries.version(db, template_id, version_id)
        if content is None:
            raise NotFound("Version")
        return content

    async def restore(self, db: TeamDb, name: TemplateReference, version_id: UUID) -> UUID:
        """Make a version the content of the draft; return the template's id. `db` is a transaction."""
        versions = await queries.lock(db, name)
        if versions is None:
            raise NotFound("Template")
        old = await self.version(db, versions.id, version_id)
        fields: dict[str, Any] = {
            "from_": old.sender,
            "subject": old.subject,
            "reply_to": None if old.reply_to is None else list(old.reply_to),
            "html": old.html,
            "text": old.text,
            "variables": [_new(variable) for variable in old.variables],
        }
        by_id = TemplateReference(versions.id, None)
        return await self.changes.change(db, by_id, ChangedTemplate(**fields), old.source)


def with_document(template: Template) -> TemplateDocument:
    """Return the template with what is kept beside its HTML."""
    content = template.content
    document = source.of_stored(content.source, content.html, content.text)
    return TemplateDocument(template, document, revision_of(template))


def revision_of(template: Template) -> str:
    """Return what changes whenever somebody edits the template."""
    content = replace(template.content, variables=())
    declared = [(one.key, one.type, one.fallback_value) for one in template.content.variables]
    parts = [template.name, template.alias, msgspec.to_builtins(content), declared]
    return sha256(msgspec.json.encode(parts)).hexdigest()[:REVISION]


def used_variables(*parts: str | None) -> list[str]:
    """Return the variables that these parts use, in their order, without those of contacts and links."""
    found: dict[str, None] = {}
    for part in parts:
        for placeholder in islice(placeholders(part or ""), MOST):
            if placeholder.name not in RESERVED and not placeholder.name.startswith(CONTACT_PATH):
                found[placeholder.name] = None
    return list(found)


def _declared(content: TemplateContent, changed: ChangedTemplate) -> list[NewVariable]:
    """Return the variables that are declared, and behind them those that are only used."""
    if isinstance(changed.variables, list):
        declared = list(changed.variables)
    else:
        declared = [] if changed.variables is None else [_new(variable) for variable in content.variables]
    known = {variable.key for variable in declared}
    subject = changed.subject if isinstance(changed.subject, str) else content.subject
    text = changed.text if isinstance(changed.text, str) else None
    used = used_variables(subject, changed.html if isinstance(changed.html, str) else None, text)
    return declared + [NewVariable(key=key, type="string") for key in used if key not in known]


def _new(variable: Variable) -> NewVariable:
    return NewVariable(key=variable.key, type=variable.type, fallback_value=variable.fallback_value)
