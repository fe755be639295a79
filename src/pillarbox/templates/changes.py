"""Making, changing, publishing, copying and deleting templates (templates.md 4 and 9).

Each call is one transaction, the one that `db` stands for. A change locks the row of the template first, so
changes come one after the other and each sees what the one before it has committed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final
from uuid import UUID

import asyncpg
from msgspec import UNSET

from pillarbox.kernel.ids import Ids, Stamp
from pillarbox.kernel.postgres.database import TeamDb, after_commit
from pillarbox.kernel.process.offload import in_thread_if_large
from pillarbox.kernel.wire.problems import InvalidField, NotFound
from pillarbox.kernel.wire.uuids import well_formed
from pillarbox.teams.allowances import TooMany, hold_count
from pillarbox.templates import content, prometheus, queries, variables
from pillarbox.templates.content import TemplateContent
from pillarbox.templates.queries import Template, TemplateReference, TemplateVersions
from pillarbox.templates.variables import DeclaredVariable
from pillarbox.templates.wire import ChangedTemplate, NewTemplate, NewVariable

MOST: Final = 10_000
"""Templates of a team."""

LONGEST_NAME: Final = 255
COPY: Final = " (Copy)"
KEPT_VERSIONS: Final = 20
KEPT_OCTETS: Final = 5 * 1024 * 1024
"""So many versions that were published before are kept, and so many octets of them."""


class AliasTaken(InvalidField):
    def __init__(self, alias: str) -> None:
        super().__init__("alias", f"There is a template with the alias `{alias}` already.")


class HtmlRequired(InvalidField):
    def __init__(self) -> None:
        super().__init__("html", "HTML is required to publish a template.")


def named(text: str) -> TemplateReference:
    """Return the reference in a path or a request: an id, or else an alias."""
    return TemplateReference(UUID(text), None) if well_formed(text) else TemplateReference(None, text)


async def template_of(db: TeamDb, name: TemplateReference) -> Template:
    """Return the template with its newest content; 404 where the team has none of that name."""
    found = await queries.get(db, name)
    if found is None:
        raise NotFound("Template")
    return found


@dataclass(frozen=True, slots=True)
class TemplateChanges:
    """The changes, and what they need."""

    ids: Ids

    async def create(self, db: TeamDb, new_template: NewTemplate) -> UUID:
        """Create a template that is a draft; return its id."""
        stamp = self.ids.stamp()
        alias = _alias(new_template.alias)
        new = TemplateContent(
            sender=content.sender(new_template.from_ or ""),
            subject=content.subject(new_template.subject or ""),
            reply_to=None if new_template.reply_to is None else content.replies(new_template.reply_to),
            html=new_template.html,
            text=new_template.text,
            variables=variables.declared(_wanted(new_template.variables), (), self.ids, stamp.at),
        )
        await _check(new)
        return await self._insert(db, stamp, new_template.name, alias, new)

    async def _insert(
        self, db: TeamDb, stamp: Stamp, name: str, alias: str | None, new: TemplateContent
    ) -> UUID:
        await hold_count(db, "templates")
        if await queries.count(db) >= MOST:
            raise TooMany(MOST, "templates")
        version_id = self.ids.new()
        try:
            await queries.insert(db, stamp.id, name, alias, version_id, stamp.at)
        except asyncpg.UniqueViolationError as clash:
            raise _taken(clash, alias) from None
        await queries.insert_version(db, stamp.id, version_id, new, stamp.at)
        _count(db, "created")
        return stamp.id

    async def change(
        self,
        db: TeamDb,
        name: TemplateReference,
        changed_template: ChangedTemplate,
        source: str | None = None,
    ) -> UUID:
        """Change the given fields that differ; return the template's id. Content goes into the draft, which
        begins as a copy of the published version. `source` is the document that new html was made of."""
        named_alias = None if changed_template.alias is UNSET else _alias(changed_template.alias)
        fields = _fields(changed_template)
        declared = None if changed_template.variables is UNSET else _wanted(changed_template.variables)
        versions, before = await _locked(db, name)
        # Ids may be ahead of the clock.
        at = max(self.ids.now(), before.updated_at)
        new = replace(before.content, **fields)
        if source is not None or (new.html, new.text) != (before.content.html, before.content.text):
            new = replace(new, source=source)
        if declared is not None:
            new = replace(new, variables=variables.declared(declared, new.variables, self.ids, at))
        title = before.name if changed_template.name is UNSET else changed_template.name
        alias = before.alias if changed_template.alias is UNSET else named_alias
        if (new, title, alias) == (before.content, before.name, before.alias):
            return before.id
        draft = versions.draft_version
        if new != before.content:
            await _check(new)
            if draft is None:
                draft = self.ids.new()
                await queries.insert_version(db, before.id, draft, new, at)
            else:
                await queries.change_version(db, before.id, draft, new)
        try:
            await queries.change(db, before.id, title, alias, draft, at)
        except asyncpg.UniqueViolationError as clash:
            raise _taken(clash, alias) from None
        _count(db, "changed")
        return before.id

    async def publish(self, db: TeamDb, name: TemplateReference) -> UUID:
        """Publish the draft and return the template's id: mail is made of it from the commit on. Without a
        draft nothing changes."""
        versions, newest = await _locked(db, name)
        if versions.draft_version is None:
            return newest.id
        if newest.content.is_blank:
            raise HtmlRequired
        await _check(newest.content)
        await queries.publish(db, newest.id, max(self.ids.now(), newest.created_at))
        if versions.published_version is not None:
            await queries.remove_old_versions(db, newest.id, KEPT_VERSIONS, KEPT_OCTETS)
        _count(db, "published")
        return newest.id

    async def duplicate(self, db: TeamDb, name: TemplateReference) -> UUID:
        """Make another template with the newest content of this one; return its id."""
        newest = await template_of(db, name)
        stamp = self.ids.stamp()
        copied = variables.copied(newest.content.variables, self.ids, stamp.at)
        title = newest.name[: LONGEST_NAME - len(COPY)] + COPY
        return await self._insert(db, stamp, title, None, replace(newest.content, variables=copied))

    async def delete(self, db: TeamDb, name: TemplateReference) -> UUID:
        found = await queries.lock(db, name)
        if found is None:
            raise NotFound("Template")
        await queries.remove(db, found.id)
        _count(db, "deleted")
        return found.id


def _fields(changed_template: ChangedTemplate) -> dict[str, Any]:
    """Return the fields that are named, apart from the variables, as a content has them. Raises for the first
    that is wrong in every template, so before anything is looked up."""
    found: dict[str, Any] = {}
    if changed_template.from_ is not UNSET:
        found["sender"] = content.sender(changed_template.from_ or "")
    if changed_template.subject is not UNSET:
        found["subject"] = content.subject(changed_template.subject or "")
    if changed_template.reply_to is not UNSET:
        found["reply_to"] = (
            None if changed_template.reply_to is None else content.replies(changed_template.reply_to)
        )
    if changed_template.html is not UNSET:
        found["html"] = changed_template.html
    if changed_template.text is not UNSET:
        found["text"] = changed_template.text
    return found


def _wanted(given: list[NewVariable] | None) -> list[DeclaredVariable]:
    """Return the variables of a request; raises for the first that cannot be declared."""
    found = [DeclaredVariable(one.key, one.type, one.fallback_value) for one in given or ()]
    variables.check_declared(found)
    return found


async def _locked(db: TeamDb, name: TemplateReference) -> tuple[TemplateVersions, Template]:
    """Return the template, locked until the transaction ends."""
    versions = await queries.lock(db, name)
    if versions is None:
        raise NotFound("Template")
    return versions, await template_of(db, TemplateReference(versions.id, None))


async def _check(new: TemplateContent) -> None:
    await in_thread_if_large(new.size, content.check, new)


def _alias(alias: str | None) -> str | None:
    if alias is not None and well_formed(alias):
        raise InvalidField("alias", "It may not have the form of a UUID.")
    return alias


def _taken(clash: asyncpg.UniqueViolationError, alias: str | None) -> Exception:
    return AliasTaken(alias or "") if clash.constraint_name == "templates_team_alias_key" else clash


def _count(db: TeamDb, change: str) -> None:
    after_commit(db.connection, partial(prometheus.CHANGES.add, 1, (change,)))
