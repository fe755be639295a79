"""The frame of the screens: its navigation, its charts, and its templates."""

from __future__ import annotations

import re

import pytest

from kit.people import a_person, logged_in
from kit.screens import address_of, table
from kit.world import World
from pillarbox.dashboard import pages
from pillarbox.dashboard.frame import charts
from pillarbox.dashboard.pages import with_code

HERE = re.compile(r'<a href="([^"]+)" aria-current="page"')
AXIS = re.compile(r'<text class="axis"[^>]*text-anchor="end">([^<]*)</text>')


async def test_a_screen_without_an_entry_is_under_the_one_that_begins_its_path(pillarbox: World) -> None:
    team = await pillarbox.team()
    browser = await logged_in(pillarbox, await a_person(team, "ada@harbor.example"))
    [one] = [screen for screen in table() if screen.path == "/dashboard/emails/{email_id}"]
    for path, entry in (
        ("/dashboard", ["/dashboard"]),
        ("/dashboard/search?q=order", []),
        (await address_of(one, team), ["/dashboard/emails"]),
        ("/dashboard/emails/receiving", ["/dashboard/emails/receiving"]),
    ):
        side = (await browser.get(path)).text.partition("<main")[0]
        assert HERE.findall(side) == entry, path


@pytest.mark.parametrize(
    ("highest", "labels"),
    [
        (0, ["0", "1", "2", "3", "4"]),
        (1, ["0", "1", "2", "3", "4"]),
        (4, ["0", "1", "2", "3", "4"]),
        (210, ["0", "60", "120", "180", "240"]),
        (0.5, ["0", "0.125", "0.25", "0.375", "0.5"]),
    ],
)
def test_counts_have_whole_numbers_at_their_axis(highest: float, labels: list[str]) -> None:
    series = [charts.Series("Delivered", [0, highest], "tone-1")]
    svg = str(charts.bars("Emails", "Day", ["Monday", "Tuesday"], series).svg)
    assert AXIS.findall(svg) == labels


async def test_templates_are_compiled_before_a_screen_is_drawn(pillarbox: World) -> None:
    """In a thread: the first view of a screen would otherwise hold up everybody for some 60 ms."""
    team = await pillarbox.team()
    browser = await logged_in(pillarbox, await a_person(team, "ada@harbor.example"))
    await browser.get("/dashboard")
    cache = pages._templates().cache
    assert cache is not None
    await pages.prepare("frame/keys.html")
    known = {name for _, name in cache}
    assert {"frame/keys.html", "frame/layout.html", "frame/icons.html", "people/fields.html"} <= known


def test_code_in_a_sentence_is_shown_as_code() -> None:
    assert with_code("The `to` of <b>") == "<bdi>The <code>to</code> of &lt;b&gt;</bdi>"
    assert with_code("`<i>`") == "<bdi><code>&lt;i&gt;</code></bdi>"
    assert with_code("one ` alone") == "one ` alone"


def test_each_shortcut_leads_to_one_screen() -> None:
    keys = [screen.navigation.keys for screen in table() if screen.navigation and screen.navigation.keys]
    assert len(keys) == len(set(keys))
