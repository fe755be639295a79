"""The pictures of the guide: screens of the demo's team, as its owner sees them.

`PILLARBOX_GUIDE_PICTURES=docs/images script/test tests/browser/test_guide_pictures.py` takes them anew. The
demo's data are the same each time; its dates end today.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from kit.browser import Chromium, Tab, chromium
from kit.browser_forms import logs_in
from kit.people import Person
from kit.world import World, world
from pillarbox.demo.making import DemoTeam, make_demo
from pillarbox.people import queries

PICTURES: Final = os.environ.get("PILLARBOX_GUIDE_PICTURES")
IMAGES: Final = Path(__file__).parents[2] / "docs" / "images"
WIDTH: Final = 1280
LARGEST: Final = 100_000

SHOWN: Final = {
    "overview": "/dashboard?span=30d",
    "emails": "/dashboard/emails",
    "email": "/dashboard/emails/{email}",
    "domain": "/dashboard/domains/{domain}",
    "webhook": "/dashboard/webhooks/{webhook}",
    "log": "/dashboard/logs",
    "metrics": "/dashboard/metrics?span=30d&by=domain",
    "queue": "/dashboard/installation/queue",
}
"""Each picture by its name, with the path of the screen."""

SUBJECTS: Final = {
    "email": """
        SELECT e.id::text FROM emails e
          JOIN contents c ON c.team_id = e.team_id AND c.id = e.content_id
         WHERE e.team_id = $1 AND e.last_event = 'clicked' AND c.html IS NOT NULL
         ORDER BY e.id DESC LIMIT 1
    """,
    "domain": "SELECT id::text FROM domains WHERE team_id = $1 ORDER BY id LIMIT 1",
    "webhook": "SELECT id::text FROM webhooks WHERE team_id = $1 ORDER BY id LIMIT 1",
}


def test_each_picture_is_there_and_small() -> None:
    for name in SHOWN:
        assert (IMAGES / f"screen-{name}.webp").stat().st_size <= LARGEST, name


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as found:
        yield found


@pytest.mark.skipif(PICTURES is None, reason="PILLARBOX_GUIDE_PICTURES is not set")
async def test_pictures_are_taken(database_url: str, tmp_path: Path, browser: Chromium) -> None:
    async with world(database_url, tmp_path, started=False) as here, browser.tab() as tab:
        demo = await make_demo(here.pool, here.app.kit.settings, datetime.now(UTC))
        person_id = await here.pool.fetchval("SELECT id FROM people WHERE email = $1", demo.email)
        await queries.set_operator(here.pool, person_id, is_operator=True)
        await logs_in(tab, here, Person(person_id, demo.email, demo.password), "/dashboard")
        await tab.look(WIDTH, is_dark=False)
        await tab.presses("Put away")
        for name, path in SHOWN.items():
            await take(tab, here, demo, name, path)


async def take(tab: Tab, here: World, demo: DemoTeam, name: str, path: str) -> None:
    ids = {key: await here.pool.fetchval(sql, demo.id) for key, sql in SUBJECTS.items()}
    await tab.open(here.url + path.format(**ids))
    await tab.small_picture(Path(PICTURES or "") / f"screen-{name}.webp")
