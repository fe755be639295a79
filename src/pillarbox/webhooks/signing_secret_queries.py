"""SQL of the sealed signing secrets, for whoever renews the key ring."""

from __future__ import annotations

from typing import Final

from pillarbox.kernel.security.sealed_values import SealedColumn

# Across teams: what the key ring has sealed.
WEBHOOK_SECRETS: Final = SealedColumn(
    table="webhooks",
    sentence="A signing secret of the webhook {id} ({owner})",
    cure="`POST /webhooks/{id}/signing-secret/rotate` makes a new one.",
    read="""
    SELECT w.team_id, w.id, secret AS sealed, w.endpoint AS owner
      FROM webhooks w
     CROSS JOIN LATERAL unnest(w.secrets) AS secret
     ORDER BY w.team_id, w.id
    """,
    replace="""
    UPDATE webhooks SET secrets = array_replace(secrets, $3, $4)
     WHERE team_id = $1 AND id = $2 AND $3 = ANY (secrets)
    """,
)
