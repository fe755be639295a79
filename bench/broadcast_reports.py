"""How long a page of a broadcast's reports takes: at its beginning, at its end, at random places, found by
address.

A broadcast to a thousand and one to a million contacts, sent at 1,500 a second a day and a half ago; a third
of the copies were opened, a twelfth clicked, since then and less and less often, one in a hundred bounced.
All of it is written by SQL, in the order of time as the product writes it. One client asks; medians and the
longest answer."""

from __future__ import annotations

import base64
import random
import statistics
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from bench.kit.results import Report, at_most, ended
from bench.kit.server import Server, serving

FEW = 1000
MANY = 1_000_000
MANY_SHORT = 100_000
RATE = 1500

BROADCAST = """
    INSERT INTO broadcasts (team_id, id, sender, subject, html, status, created_at, queued_at,
                            resolved_at, sent_at, domain_name, recipients)
    VALUES ($1::uuid, $2::uuid, 'news@harbor.example', 'Tides', 'Tides', 'sent', $3::timestamptz,
            $3::timestamptz, $3::timestamptz,
            $3::timestamptz + $4::int / $5::float8 * interval '1 second', 'harbor.example', $4)
"""

COPIES = """
    CREATE UNLOGGED TABLE made AS
    SELECT n, at,
           (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7000'
               || lpad(to_hex(32768 + $4::int), 4, '0') || lpad(to_hex(n), 12, '0'))::uuid AS id,
           'person.' || n || '@inbox' || n % 2000 || '.s' || $4::int || '.example' AS address,
           at + interval '50 milliseconds' AS sent_at, at + interval '300 milliseconds' AS delivered_at,
           CASE WHEN n % 3 = 0
                THEN at + interval '1 minute' + power(random(), 3) * interval '34 hours' END AS opened_at,
           CASE WHEN n % 12 = 0
                THEN at + interval '2 minutes' + power(random(), 3) * interval '34 hours' END AS clicked_at,
           CASE WHEN n % 100 = 1 THEN at + interval '310 milliseconds' END AS bounced_at
      FROM (SELECT n, $1::timestamptz + n / $3::float8 * interval '1 second' AS at
              FROM generate_series(1, $2::int) AS n) AS numbers
"""

FILL = (
    """
    INSERT INTO contacts (team_id, id, address, unsubscribed, created_at, updated_at)
    SELECT $1::uuid, id, address, false, at, at FROM made WHERE $2::uuid IS NOT NULL
    """,
    """
    INSERT INTO broadcast_recipients (team_id, broadcast_id, contact_id, email_id)
    SELECT $1::uuid, $2::uuid, id, id FROM made
    """,
    """
    INSERT INTO emails (team_id, id, created_at, content_id, message_id, sender, to_list, subject,
                        domain_name, broadcast_id, last_event, last_event_at)
    SELECT $1::uuid, id, at, $2::uuid, '', '', '[]', '', 'harbor.example', $2::uuid, 'delivered', at FROM made
    """,
    """
    INSERT INTO recipients (team_id, email_id, position, role, address, mailbox, grp, state, sent_at,
                            bounce_type, opened_at, clicked_at)
    SELECT $1::uuid, id, 0, 'to', address, address, 0, 'delivered', sent_at,
           CASE WHEN bounced_at IS NOT NULL THEN 'Transient' END, opened_at, clicked_at
      FROM made
     WHERE $2::uuid IS NOT NULL
    """,
    """
    INSERT INTO timeline (team_id, id, email_id, at, kind, position, detail)
    SELECT $1::uuid, gen_random_uuid(), m.id, e.at, e.kind, 0,
           CASE e.kind WHEN 'clicked'
                       THEN json_build_object('click',
                                json_build_object('link', 'https://harbor.example/' || m.n % 40)) END
      FROM made m
     CROSS JOIN LATERAL (VALUES ('sent', m.sent_at), ('delivered', m.delivered_at), ('opened', m.opened_at),
                                ('clicked', m.clicked_at), ('bounced', m.bounced_at)) AS e (kind, at)
     WHERE e.at IS NOT NULL AND $2::uuid IS NOT NULL
     ORDER BY e.at
    """,
    """
    INSERT INTO rollups
    SELECT $1::uuid, l.level, date_bin(l.width, t.at, 'epoch'::timestamptz),
           '00000000-0000-0000-0000-000000000000', 'harbor.example', $2::uuid, 0,
           count(*) FILTER (WHERE kind = 'sent'), count(*) FILTER (WHERE kind = 'delivered'), 0, 0, 0,
           count(*) FILTER (WHERE kind = 'bounced'), 0, 0,
           count(*) FILTER (WHERE kind = 'opened'), count(*) FILTER (WHERE kind = 'clicked'),
           count(*) FILTER (WHERE kind = 'opened'), count(*) FILTER (WHERE kind = 'clicked'), 0, 0
      FROM timeline t
      JOIN made m ON m.id = t.email_id
     CROSS JOIN (VALUES (0::smallint, interval '10 seconds'), (1, '15 minutes'), (2, '1 hour'), (3, '1 day'))
           AS l (level, width)
     WHERE t.team_id = $1::uuid
     GROUP BY 1, 2, 3
    """,
)
TABLES = ("contacts", "broadcast_recipients", "emails", "recipients", "timeline", "rollups")

PAGES = {
    "sent, first page": "recipients?type=sent&limit=100",
    "sent, random place": "recipients?type=sent&limit=100&after={sent}",
    "delivered, random place": "recipients?type=delivered&limit=100&after={sent}",
    "opened, random place": "recipients?type=opened&limit=100&after={opened}",
    "opened, near the end": "recipients?type=opened&limit=100&after={last_opened}",
    "clicked, random place": "recipients?type=clicked&limit=100&after={clicked}",
    "bounced, random place": "recipients?type=bounced&limit=100&after={bounced}",
    "sent, by address": "recipients?type=sent&email=person.77{digit}",
    "clicked links": "clicked-links?limit=20",
}


def measure(report: Report) -> None:
    many = MANY_SHORT if report.short else MANY
    with serving(report, report.folder / "data", roles="api", processes=1) as server:
        small = fill(server, "small", FEW)
        for place, found in timed(server, *small, FEW).items():
            report.result(f"{place}, {FEW:,} recipients", statistics.median(found), "ms")
        big = fill(server, "big", many)
        for place, found in timed(server, *big, many).items():
            note = f"longest {max(found):.0f} ms"
            most = 200 if "random" in place or "first" in place else 2000
            name = f"{place}, {many:,} recipients"
            report.result(name, statistics.median(found), "ms", at_most(most), note=note)


def fill(server: Server, name: str, count: int) -> tuple[str, str]:
    """A team whose broadcast was sent: its key and the id of the broadcast."""
    team_id, key = server.make_team(name)
    broadcast_id = f"0199a3b0-0000-7000-8000-{random.randrange(1 << 48):012x}"
    begun = datetime.now(UTC) - timedelta(hours=36)
    server.sql(BROADCAST, team_id, broadcast_id, begun, count, RATE)
    server.sql(COPIES, begun, count, RATE, random.randrange(1000))
    for statement in FILL:
        server.sql(statement, team_id, broadcast_id)
    server.sql("DROP TABLE made")
    for table in TABLES:
        server.sql(f"VACUUM (ANALYZE) {table}")
    return key, broadcast_id


def timed(server: Server, key: str, broadcast_id: str, count: int) -> dict[str, list[float]]:
    """Milliseconds of answers, by what was asked."""
    conn = server.connection()
    found: dict[str, list[float]] = {}
    for place, path in PAGES.items():
        found[place] = []
        for _ in range(12):
            whole = f"/broadcasts/{broadcast_id}/{path.format(**_places(count))}"
            began = time.perf_counter()
            conn.request("GET", whole, headers={"authorization": f"Bearer {key}"})
            answer = conn.getresponse()
            body = answer.read()
            if answer.status != 200:
                raise RuntimeError(f"{whole}: {answer.status} {body[:200]!r}")
            found[place].append((time.perf_counter() - began) * 1000)
    conn.close()
    return found


def _places(count: int) -> dict[str, Any]:
    parts = {"sent": 1, "opened": 3, "clicked": 12, "bounced": 100}
    places = {name: _cursor(random.randrange(count // part)) for name, part in parts.items()}
    return {**places, "last_opened": _cursor(count // 3 - 150), "digit": random.randrange(100)}


def _cursor(position: int) -> str:
    return base64.urlsafe_b64encode(f"offset:{position}".encode()).decode().rstrip("=")


if __name__ == "__main__":
    ended("broadcast_reports", measure, __doc__)
