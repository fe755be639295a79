"""The links of a mail before it is sent: which they are, and what their servers say."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kit.automation_runs import a_dead_process
from kit.http_outside import Zone, client
from kit.manual_world import clock_of, manual_world, run_jobs
from kit.receiver import hangs, receiver, status
from kit.world import Team
from pillarbox.documents.link_checks import link_request
from pillarbox.documents.link_checks.checks import MOST_WAITING, CheckedLink, LinkChecks, checked_links
from pillarbox.documents.link_checks.jobs import KEPT, LONGEST_WAIT, LinkCheckJobs
from pillarbox.documents.link_checks.link_request import LinkResult, asked
from pillarbox.documents.link_checks.mail_links import MOST_LINKS, MailLinks, MailPart, links_of
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.work.lone_attempts import MOST_BEGUN
from pillarbox.teams.allowances import TooMany


def urls(html: str, text: str = "", **fallbacks: str) -> list[str]:
    return list(links_of([MailPart(html, text, fallbacks)]).urls)


@pytest.mark.parametrize(
    ("href", "expected"),
    [
        ("https://pier.example/tides", ["https://pier.example/tides"]),
        ("HTTPS://Pier.example", ["https://pier.example/"]),
        ("https://pier.example/a?b=1&amp;c=2#part", ["https://pier.example/a?b=1&c=2"]),
        ("https://pier.example/?name={{{FIRST_NAME|you}}}", ["https://pier.example/?name=you"]),
        ("https://pier.example/?name={{{FIRST_NAME}}}", ["https://pier.example/?name="]),
        ("https://pier.example/{{{PLACE}}}/now", ["https://pier.example/quay/now"]),
        ("https://pier.example/{{{contact.token}}}", []),
        ("https://{{{PLACE}}}.example/", []),
        ("{{{UNSUBSCRIBE_URL}}}", []),
        ("mailto:ada@pier.example", []),
        ("javascript:alert(1)", []),
        ("https://ada:secret@pier.example/", []),
        (f"https://pier.example/{'a' * 3000}", []),
    ],
)
def test_a_link_is_asked_for_where_it_is_the_same_for_all(href: str, expected: list[str]) -> None:
    assert urls(f'<p><a href="{href}">tides</a></p>', PLACE="quay") == expected


def test_links_of_html_and_text_count_once_and_up_to_a_bound() -> None:
    text = "See https://pier.example/a. Or (https://pier.example/b), https://{{{HOST}}}/c"
    html = '<a href="https://pier.example/a#x">a</a><a href="https://pier.example/a">a</a>'
    assert urls(html, text) == ["https://pier.example/a", "https://pier.example/b"]
    many = "".join(f'<a href="https://pier.example/{number}">x</a>' for number in range(MOST_LINKS + 1))
    found = links_of([MailPart(many, "", {})])
    assert (len(found.urls), found.has_more) == (MOST_LINKS, True)


@pytest.mark.parametrize(
    ("code", "result"),
    [
        (200, LinkResult("ok", None, 200)),
        (304, LinkResult("ok", None, 304)),
        (404, LinkResult("broken", "answer", 404)),
        (403, LinkResult("broken", "not_for_programs", 403)),
        (500, LinkResult("broken", "answer", 500)),
    ],
)
async def test_the_status_says_what_a_link_is(code: int, result: LinkResult) -> None:
    async with receiver() as at, client() as outbound:
        at.answers(b"HTTP/1.1 %d Said\r\nContent-Length: 1000000\r\n\r\n" % code)
        assert await asked(outbound, at.url) == result
        assert [arrival.target for arrival in at.arrivals] == ["HEAD /in HTTP/1.1"]


@pytest.mark.parametrize("code", [405, 501])
async def test_a_server_without_head_is_asked_by_get_and_its_body_is_not_waited_for(code: int) -> None:
    async with receiver() as at, client() as outbound:
        at.answers(status(code), b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nbegin")
        assert await asked(outbound, at.url) == LinkResult("ok", None, 200)
        assert [arrival.target.split()[0] for arrival in at.arrivals] == ["HEAD", "GET"]


async def test_redirects_are_followed_to_a_bound() -> None:
    async with receiver() as at, receiver() as behind, client() as outbound:
        at.answers(status(302, b"", f"Location: {behind.url}"))
        assert await asked(outbound, at.url) == LinkResult("ok", None, 200)
        at.answers(status(302, b"", "Location: /again"))
        assert await asked(outbound, at.url) == LinkResult("broken", "redirects")
        assert len(at.arrivals) == 1 + link_request.LIMITS.redirects + 1
        at.answers(status(302, b"", "Location: mailto:ada@pier.example"))
        assert await asked(outbound, at.url) == LinkResult("broken", "url")


async def test_no_private_address_is_asked_for_also_behind_a_redirect() -> None:
    """WH-06."""
    zone = Zone(inside_example=["127.0.0.2"], two_example=["127.0.0.1", "10.0.0.1"])
    async with receiver() as at, receiver(host="127.0.0.2") as inside, client(zone) as outbound:
        refused = LinkResult("refused", "refused")
        assert await asked(outbound, inside.url) == refused
        assert await asked(outbound, f"http://inside.example:{inside.port}/") == refused
        assert await asked(outbound, f"http://two.example:{at.port}/") == refused
        for location in (inside.url, f"http://inside.example:{inside.port}/", "http://169.254.169.254/"):
            at.answers(status(302, b"", f"Location: {location}"))
            assert await asked(outbound, at.url) == refused
        at.answers(status(405), status(302, b"", f"Location: {inside.url}"))
        assert await asked(outbound, at.url) == refused
        assert inside.connections == 0


async def test_a_server_that_stands_still_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_request, "SECONDS", 0.3)
    async with receiver() as at, client() as outbound:
        at.answers(hangs)
        assert await asked(outbound, at.url) == LinkResult("unreachable", "timeout")
        at.answers(status(405), hangs)
        assert await asked(outbound, at.url) == LinkResult("unreachable", "timeout")


async def test_a_host_that_is_not_there_and_one_that_takes_no_connection_are_told_apart() -> None:
    async with receiver() as at, client(Zone()) as outbound:
        assert await asked(outbound, "https://gone.example/") == LinkResult("unreachable", "dns")
        at.answers(b"no HTTP at all\r\n\r\n")
        assert await asked(outbound, at.url) == LinkResult("unreachable", "protocol")
    async with client() as outbound:
        assert await asked(outbound, at.url) == LinkResult("unreachable", "connect")


# Jobs ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def place(databases: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    url = databases.fresh()
    yield url, tmp_path_factory.mktemp("links")
    databases.drop(url)


@pytest.fixture
@asynccontextmanager
async def team(place: tuple[str, Path]) -> AsyncIterator[Team]:
    async with manual_world(*place, allow_private="127.0.0.1/32") as pillarbox:
        yield await pillarbox.team()


def db_of(team: Team) -> TeamDb:
    return TeamDb(team.world.pool, team.id)


async def begin(team: Team, *links: str) -> None:
    await team.world.app.need(LinkChecks).begin(db_of(team), MailLinks(links, has_more=False))


async def found(team: Team, *links: str) -> list[str]:
    """Return the states of these links."""

    def said(link: CheckedLink) -> str:
        known = link.known
        return "unknown" if known is None else " ".join(filter(None, (known.status, known.reason)))

    return [said(link) for link in await checked_links(db_of(team), MailLinks(links, has_more=False))]


async def run_all(team: Team) -> None:
    while await run_jobs(team.world):
        pass


async def test_a_team_asks_for_a_link_once_an_hour(team: Team) -> None:
    other = await team.world.team("Quay")
    async with receiver() as at:
        at.answers(status(404))
        assert await found(team, at.url) == ["unknown"]
        await begin(team, at.url)
        await begin(team, at.url)
        assert await found(team, at.url) == ["waiting"]
        await run_all(team)
        await begin(team, at.url, "http://127.0.0.2/")
        await run_all(team)
        assert await found(team, at.url, "http://127.0.0.2/") == ["broken answer", "refused refused"]
        assert await found(other, at.url) == ["unknown"]
        assert len(at.arrivals) == 1
        clock_of(team.world).advance(timedelta(hours=1, seconds=1))
        at.answers(status(200))
        await begin(team, at.url)
        await run_all(team)
        assert await found(team, at.url) == ["ok"]
        assert len(at.arrivals) == 2


async def test_a_process_that_dies_leaves_the_link_to_another(team: Team) -> None:
    """One that takes its process with it again and again is given up."""
    pillarbox = team.world
    claimed = "UPDATE jobs SET owner = $1, leased_until = $2, attempt = attempt + 1, begun = $3"
    async with receiver() as at:
        dead = await a_dead_process(pillarbox)
        await begin(team, at.url)
        await pillarbox.pool.execute(claimed, dead, pillarbox.clock.now() + timedelta(seconds=60), 0)
        clock_of(pillarbox).advance(5)
        await run_all(team)
        assert await found(team, at.url) == ["ok"]
        other = f"{at.url}/other"
        await begin(team, other)
        await pillarbox.pool.execute(claimed, dead, pillarbox.clock.now() + timedelta(seconds=60), MOST_BEGUN)
        clock_of(pillarbox).advance(5)
        await run_all(team)
        assert await found(team, other) == ["unreachable internal_error"]
        assert len(at.arrivals) == 1


async def test_a_link_whose_job_is_gone_is_asked_for_again(team: Team) -> None:
    """After a restore jobs may be dropped (docs/decisions/0192)."""
    async with receiver() as at:
        await begin(team, at.url)
        await team.world.pool.execute("DELETE FROM jobs")
        await begin(team, at.url)
        await run_all(team)
        assert await found(team, at.url) == ["waiting"]
        clock_of(team.world).advance(timedelta(hours=1, seconds=1))
        await begin(team, at.url)
        await run_all(team)
        assert await found(team, at.url) == ["ok"]


async def test_what_waited_too_long_is_not_asked_for_and_old_results_go(team: Team) -> None:
    async with receiver() as at:
        await begin(team, at.url)
        clock_of(team.world).advance(LONGEST_WAIT + timedelta(seconds=1))
        await run_all(team)
        assert await found(team, at.url) == ["unreachable too_late"]
        assert at.connections == 0
        jobs = team.world.app.need(LinkCheckJobs)
        clock_of(team.world).advance(KEPT - LONGEST_WAIT - timedelta(minutes=1))
        await jobs.collect()
        assert await found(team, at.url) == ["unreachable too_late"]
        clock_of(team.world).advance(timedelta(minutes=2))
        await jobs.collect()
        assert await found(team, at.url) == ["unknown"]


async def test_a_team_has_a_bounded_number_of_links_that_wait(team: Team) -> None:
    for page in range(MOST_WAITING // MOST_LINKS):
        await begin(team, *(f"https://pier.example/{page}/{number}" for number in range(MOST_LINKS)))
    with pytest.raises(TooMany):
        await begin(team, "https://pier.example/more")
    assert await found(team, "https://pier.example/more") == ["unknown"]
    other = await team.world.team("Quay")
    await begin(other, "https://pier.example/more")
