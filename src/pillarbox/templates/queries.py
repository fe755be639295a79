"""SQL of templates and of their versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import Page
from pillarbox.templates.content import TemplateContent
from pillarbox.templates.variables import of_stored, stored


class TemplateReference(NamedTuple):
    """The id or the alias by which a path or a request names a template; the other one is None."""

    id: UUID | None
    alias: str | None


@dataclass(frozen=True, slots=True)
class Template:
    """A template with its newest content, which is that of the draft where there is one."""

    id: UUID
    name: str
    alias: str | None
    version_id: UUID
    has_draft: bool
    content: TemplateContent
    published_at: datetime | None
    created_at: datetime
    updated_at: datetime

    @property
    def status(self) -> str:
        return "draft" if self.published_at is None else "published"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTemplate:
    """A template as lists show it."""

    id: UUID
    name: str
    alias: str | None
    published_at: datetime | None
    created_at: datetime
    updated_at: datetime

    @property
    def status(self) -> str:
        return "draft" if self.published_at is None else "published"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedVersion:
    """A version of a template as its list shows it."""

    id: UUID
    subject: str | None
    octets: int
    created_at: datetime
    published_at: datetime | None
    is_draft: bool
    is_published: bool


class PublishedTemplate(NamedTuple):
    """A template as mail is made of it; without content where it was never published, or where there are too
    many octets before it."""

    id: UUID
    alias: str | None
    is_published: bool
    content: TemplateContent | None


class TemplateVersions(NamedTuple):
    """Which versions a template has."""

    id: UUID
    published_version: UUID | None
    draft_version: UUID | None


GET: Final = """
    SELECT t.id, t.name, t.alias, v.id AS version_id, t.draft_version IS NOT NULL AS has_draft, v.sender,
           v.subject, v.reply_to_list, v.html, v.text, v.variables, v.source, t.published_at, t.created_at,
           t.updated_at
      FROM templates t
      JOIN template_versions v
        ON v.team_id = t.team_id AND v.template_id = t.id
       AND v.id = coalesce(t.draft_version, t.published_version)
     WHERE t.team_id = $1 AND (t.id = $2 OR t.alias = $3)
"""

# The row is locked first: what is read afterwards, by a statement of its own, is as the lock found it.
LOCK: Final = """
    SELECT id, published_version, draft_version
      FROM templates
     WHERE team_id = $1 AND (id = $2 OR alias = $3)
       FOR UPDATE
"""

# The bodies of the older ones, as long as those before them have less than $4 octets together.
PUBLISHED: Final = """
    SELECT t.id, t.alias, t.published_version IS NOT NULL AS is_published, v.sender, v.subject,
           v.reply_to_list, v.text, v.variables,
           CASE WHEN coalesce(sum(s.octets) OVER earlier, 0) < $4 THEN v.html END AS html
      FROM templates t
      LEFT JOIN template_versions v
        ON v.team_id = t.team_id AND v.template_id = t.id AND v.id = t.published_version
     CROSS JOIN LATERAL (
           SELECT octet_length(v.html) + coalesce(octet_length(v.text), 0) AS octets) AS s
     WHERE t.team_id = $1 AND (t.id = ANY ($2::uuid[]) OR t.alias = ANY ($3::text[]))
    WINDOW earlier AS (ORDER BY t.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
"""

INSERT: Final = """
    INSERT INTO templates (team_id, id, name, alias, draft_version, created_at, updated_at)
    VALUES ($1, $2, $3, $4, $5, $6, $6)
"""

INSERT_VERSION: Final = """
    INSERT INTO template_versions (team_id, template_id, id, sender, subject, reply_to_list, html, text,
                                   variables, source, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
"""

CHANGE_VERSION: Final = """
    UPDATE template_versions
       SET sender = $4, subject = $5, reply_to_list = $6, html = $7, text = $8, variables = $9, source = $10
     WHERE team_id = $1 AND template_id = $2 AND id = $3
"""

CHANGE: Final = """
    UPDATE templates
       SET name = $3, alias = $4, draft_version = $5, updated_at = $6
     WHERE team_id = $1 AND id = $2
"""

PUBLISH: Final = """
    UPDATE templates
       SET published_version = draft_version, draft_version = NULL, published_at = $3
     WHERE team_id = $1 AND id = $2 AND draft_version IS NOT NULL
"""

# The version that is published now is dated, and so is the one before, where an older release published it.
DATE_VERSIONS: Final = """
    UPDATE template_versions v
       SET published_at = CASE WHEN v.id = t.published_version THEN t.published_at ELSE $3 END
      FROM templates t
     WHERE t.team_id = $1 AND t.id = $2 AND v.team_id = $1 AND v.template_id = $2
       AND (v.id = t.draft_version OR (v.id = t.published_version AND v.published_at IS NULL))
"""

# Of the versions that were published before, the newest $3 stay, while they have at most $4 octets together.
REMOVE_OLD_VERSIONS: Final = """
    DELETE FROM template_versions v
     USING (SELECT o.id, row_number() OVER newest AS number,
                   sum(octet_length(o.html) + coalesce(octet_length(o.text), 0)) OVER newest AS octets
              FROM template_versions o
              JOIN templates t ON t.team_id = o.team_id AND t.id = o.template_id
             WHERE o.team_id = $1 AND o.template_id = $2
               AND o.id IS DISTINCT FROM t.published_version AND o.id IS DISTINCT FROM t.draft_version
            WINDOW newest AS (ORDER BY o.published_at DESC, o.id DESC)) AS old
     WHERE v.team_id = $1 AND v.template_id = $2 AND v.id = old.id AND (old.number > $3 OR old.octets > $4)
"""

VERSIONS: Final = """
    SELECT v.id, v.subject, octet_length(v.html) AS octets, v.created_at, v.published_at,
           v.id IS NOT DISTINCT FROM t.draft_version AS is_draft,
           v.id IS NOT DISTINCT FROM t.published_version AS is_published
      FROM template_versions v
      JOIN templates t ON t.team_id = v.team_id AND t.id = v.template_id
     WHERE v.team_id = $1 AND v.template_id = $2
     ORDER BY is_draft DESC, is_published DESC, v.published_at DESC NULLS LAST, v.id DESC
"""

VERSION: Final = """
    SELECT sender, subject, reply_to_list, html, text, variables, source
      FROM template_versions
     WHERE team_id = $1 AND template_id = $2 AND id = $3
"""

REMOVE: Final = """
    DELETE FROM templates WHERE team_id = $1 AND id = $2
"""

REMOVE_VERSIONS: Final = """
    DELETE FROM template_versions WHERE team_id = $1 AND template_id = $2
"""

PAGE: Final = """
    SELECT id, name, alias, published_at, created_at, updated_at FROM (
        (SELECT *
           FROM templates WHERE team_id = $1 AND id < $2 ORDER BY id DESC LIMIT $4)
        UNION ALL
        (SELECT *
           FROM templates WHERE team_id = $1 AND id > $3 ORDER BY id LIMIT $4)
    ) AS page
"""

COUNT: Final = """
    SELECT count(*) FROM templates WHERE team_id = $1
"""


async def get(db: TeamDb, named: TemplateReference) -> Template | None:
    return await db.one(_template, GET, *named)


async def lock(db: TeamDb, named: TemplateReference) -> TemplateVersions | None:
    """Lock the template until the transaction ends, and return its versions; None where it does not exist."""
    return await db.one(TemplateVersions, LOCK, *named)


async def published(
    db: TeamDb, ids: Sequence[UUID], aliases: Sequence[str], limit: int
) -> list[PublishedTemplate]:
    """Return those of these templates that the team has."""
    return await db.all(_published, PUBLISHED, ids, aliases, limit)


async def page(db: TeamDb, page: Page) -> list[ListedTemplate]:
    return await db.all(ListedTemplate, PAGE, *page.args)


async def count(db: TeamDb) -> int:
    return int(await db.value(COUNT))


async def insert(
    db: TeamDb, template_id: UUID, name: str, alias: str | None, version_id: UUID, now: datetime
) -> None:
    await db.run(INSERT, template_id, name, alias, version_id, now)


async def insert_version(
    db: TeamDb, template_id: UUID, version_id: UUID, content: TemplateContent, now: datetime
) -> None:
    await db.run(INSERT_VERSION, template_id, version_id, *_columns(content), now)


async def change_version(db: TeamDb, template_id: UUID, version_id: UUID, content: TemplateContent) -> None:
    await db.run(CHANGE_VERSION, template_id, version_id, *_columns(content))


async def change(
    db: TeamDb, template_id: UUID, name: str, alias: str | None, draft: UUID | None, now: datetime
) -> None:
    await db.run(CHANGE, template_id, name, alias, draft, now)


async def publish(db: TeamDb, template_id: UUID, now: datetime) -> None:
    """Make the draft the published version; the one before is kept."""
    await db.run(DATE_VERSIONS, template_id, now)
    await db.run(PUBLISH, template_id, now)


async def remove_old_versions(db: TeamDb, template_id: UUID, limit: int, octets: int) -> None:
    """Delete versions that were published before, beyond these bounds."""
    await db.run(REMOVE_OLD_VERSIONS, template_id, limit, octets)


async def versions(db: TeamDb, template_id: UUID) -> list[ListedVersion]:
    """Return the versions of a template: the draft, the published one, and those before, the newest first."""
    return await db.all(ListedVersion, VERSIONS, template_id)


async def version(db: TeamDb, template_id: UUID, version_id: UUID) -> TemplateContent | None:
    """Return the content of a version."""
    return await db.one(_content, VERSION, template_id, version_id)


async def remove(db: TeamDb, template_id: UUID) -> None:
    """Delete the template, which must be locked, and its versions."""
    await db.run(REMOVE_VERSIONS, template_id)
    await db.run(REMOVE, template_id)


def _columns(content: TemplateContent) -> tuple[Any, ...]:
    replies = None if content.reply_to is None else msgspec.json.encode(content.reply_to).decode()
    return (
        content.sender,
        content.subject,
        replies,
        content.html,
        content.text,
        stored(content.variables),
        content.source,
    )


def _content(
    sender: str | None,
    subject: str | None,
    reply_to_list: str | None,
    html: str,
    text: str | None,
    variables: str,
    source: str | None = None,
) -> TemplateContent:
    replies = None if reply_to_list is None else tuple(msgspec.json.decode(reply_to_list))
    return TemplateContent(
        sender=sender,
        subject=subject,
        reply_to=replies,
        html=html,
        text=text,
        variables=tuple(of_stored(variables)),
        source=source,
    )


def _template(
    *,
    id: UUID,
    name: str,
    alias: str | None,
    version_id: UUID,
    has_draft: bool,
    published_at: datetime | None,
    created_at: datetime,
    updated_at: datetime,
    **content: Any,
) -> Template:
    return Template(
        id=id,
        name=name,
        alias=alias,
        version_id=version_id,
        has_draft=has_draft,
        content=_content(**content),
        published_at=published_at,
        created_at=created_at,
        updated_at=updated_at,
    )


def _published(
    *, id: UUID, alias: str | None, is_published: bool, html: str | None, **rest: Any
) -> PublishedTemplate:
    content = None if html is None else _content(html=html, **rest)
    return PublishedTemplate(id, alias, is_published, content)
