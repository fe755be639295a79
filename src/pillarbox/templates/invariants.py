"""The invariants of templates (`pillarbox verify`)."""

from __future__ import annotations

from pillarbox.kernel.postgres.invariant import Invariant

INVARIANTS: tuple[Invariant, ...] = (
    Invariant(
        "template_without_version",
        "The template {template_id} names a version that does not exist.",
        """
        SELECT t.team_id, t.id AS template_id
          FROM templates t
         WHERE num_nonnulls(t.published_version, t.draft_version) <>
               (SELECT count(*) FROM template_versions v
                 WHERE v.team_id = t.team_id AND v.template_id = t.id
                   AND v.id IN (t.published_version, t.draft_version))
         LIMIT $1
        """,
    ),
    Invariant(
        "version_without_template",
        "The version {version_id} is neither the draft of a template nor was it ever published.",
        """
        SELECT v.team_id, v.id AS version_id
          FROM template_versions v
         WHERE NOT EXISTS (SELECT FROM templates t
                            WHERE t.team_id = v.team_id AND t.id = v.template_id
                              AND (v.id IN (t.published_version, t.draft_version)
                                   OR v.published_at IS NOT NULL))
         LIMIT $1
        """,
    ),
)
