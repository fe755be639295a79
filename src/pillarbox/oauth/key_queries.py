"""SQL of the keys that sign access tokens. They are the installation's."""

from __future__ import annotations

from typing import Final

from pillarbox.kernel.security.sealed_values import SealedColumn

READ: Final = """
    SELECT id, kid, public, private, active_at
      FROM oauth_keys
     WHERE retired_at IS NULL
     ORDER BY active_at, id
"""

ADD: Final = """
    INSERT INTO oauth_keys (id, kid, public, private, created_at, active_at)
    VALUES ($1, $2, $3::json, $4, $5, $6)
"""

# Those whose successor has signed since some time: nothing that they signed is good any more.
RETIRE_REPLACED: Final = """
    UPDATE oauth_keys k
       SET retired_at = $1
     WHERE k.retired_at IS NULL
       AND EXISTS (SELECT FROM oauth_keys n
                    WHERE n.retired_at IS NULL AND n.active_at > k.active_at AND n.active_at <= $2)
"""

RETIRE_OTHERS: Final = """
    UPDATE oauth_keys SET retired_at = $1 WHERE retired_at IS NULL AND id <> $2
"""

REMOVE_RETIRED: Final = """
    DELETE FROM oauth_keys WHERE retired_at < $1
"""

OAUTH_KEYS: Final = SealedColumn(
    "oauth_keys",
    "The private key {owner} of access tokens",
    "no new tokens are signed with it: `pillarbox oauth rotate-keys` makes another key.",
    """
    SELECT '00000000-0000-0000-0000-000000000000'::uuid AS team_id, id, private AS sealed, kid AS owner
      FROM oauth_keys
     ORDER BY id
    """,
    """
    UPDATE oauth_keys SET private = $4 WHERE $1::uuid IS NOT NULL AND id = $2 AND private = $3
    """,
)
