"""Nothing that a request says gets into a header of its answer as it stands.

Generated from the route tables: a mark with every character that means something in a header goes into each
path, query and request header; wherever the mark comes back in a header, it is percent-encoded.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

from kit.brought import CAPTURE_ROUTES, ROUTES
from kit.world import world
from pillarbox.kernel.http.routing import Access

WORD = "Zq7"
MARK = f"{WORD}; script-src * 'x' \"y\", z=\\<{WORD}\t>{WORD}"
RAW = re.compile(rf"{WORD}(?!%|\Z|&)", re.IGNORECASE)

QUERY = "&".join(f"{name}={quote(MARK)}" for name in ("token", "q", "view", "key", "after", "limit", "x"))
ENTER = "token=capture-token"
SAID = (
    "user-agent",
    "referer",
    "origin",
    "range",
    "idempotency-key",
    "x-forwarded-host",
    "x-forwarded-proto",
)


async def test_no_route_writes_what_it_is_told_into_a_header(database_url: str, tmp_path: Path) -> None:
    async with world(database_url, tmp_path, route="capture", started=False) as pillarbox:
        team, operator = await pillarbox.team(), pillarbox.client("capture-token")
        headers = {name: MARK.replace("\t", " ") for name in SAID}
        asked = 0
        for entry in (*ROUTES, *CAPTURE_ROUTES):
            client = operator if entry in CAPTURE_ROUTES or entry.needs is Access.PUBLIC else team.http
            path = entry.path.format(**dict.fromkeys(entry.parameters, quote(MARK, safe="")))
            for method, query in (
                (entry.method, QUERY),
                (entry.method, f"{ENTER}&{QUERY}"),
                ("OPTIONS", QUERY),
            ):
                answer = await client.request(method, f"{path}?{query}", headers=headers)
                asked += 1
                for name, value in answer.headers.items():
                    assert RAW.search(value) is None, (method, path, name, value)
        assert asked > 100
