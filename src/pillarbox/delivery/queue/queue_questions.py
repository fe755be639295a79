"""What the poll of queues asks for the engine (`kernel.work.queue_poll`): each is true where a loop of it has
something to do."""

from __future__ import annotations

from typing import Final

# Across teams: whether there is any mail in the queue.
HAS_MAIL: Final = "SELECT EXISTS (SELECT FROM deliveries)"

# Across teams: whether the operator holds something back.
IS_PAUSED: Final = "SELECT EXISTS (SELECT FROM paused)"

# Of no team: whether a site has complained a moment ago. Longer than `site_sharing.OVERLAP`, so that what is
# read by then is forgotten.
HAS_COMPLAINTS: Final = (
    "SELECT EXISTS (SELECT FROM sites WHERE changed_at > $1::timestamptz - interval '1 minute')"
)
