"""What nobody may do with screens: make them slow, large, or fail; act for a blocked team."""

from __future__ import annotations

import json

import pytest

from kit.people import a_person, logged_in, text_of
from kit.world import World
from pillarbox.dashboard.emails.send_form import split_addresses
from pillarbox.dashboard.frame.csv_file import lines
from pillarbox.dashboard.frame.json_text import indented, indented_text
from pillarbox.dashboard.people.page_visits import REQUESTS
from pillarbox.kernel.http import maintenance
from pillarbox.kernel.http.maintenance import Maintenance
from pillarbox.people.roles import TeamRole
from pillarbox.webhooks.signature_check import signature_headers


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("a@quay.example, b@quay.example", ["a@quay.example", "b@quay.example"]),
        (
            "a@quay.example\nb@quay.example;c@quay.example",
            ["a@quay.example", "b@quay.example", "c@quay.example"],
        ),
        ('"Quay, Ada" <a@quay.example>, b@quay.example', ['"Quay, Ada" <a@quay.example>', "b@quay.example"]),
        (r'"a \" b, c" <a@quay.example>,', [r'"a \" b, c" <a@quay.example>']),
        ('"open, a@quay.example\nb@quay.example', ['"open, a@quay.example', "b@quay.example"]),
        (" ,; \n", []),
    ],
)
def test_addresses_of_a_field(text: str, addresses: list[str]) -> None:
    assert split_addresses(text) == addresses


@pytest.mark.parametrize("unit", ['"\\', '"', "\\", ",", "a,"])
def test_addresses_take_linear_time(unit: str) -> None:
    """Twenty times as long a text took four hundred times as long."""
    assert len(split_addresses(unit * 500_000)) <= 500_000


def test_headers_of_a_delivery_are_read_as_people_paste_them() -> None:
    pasted = (
        "svix-id: msg_1\n\"svix-timestamp\": \"12\",\n  'svix-signature' = 'v1,abc='\nsvix-id: x"
        + " " * 60_000
        + "y"
    )
    assert signature_headers(pasted) == {"id": "msg_1", "timestamp": "12", "signature": "v1,abc="}


def test_json_of_strangers_does_not_grow() -> None:
    deep = "[" * 900 + "1," * 3000 + "1" + "]" * 900
    assert len(indented_text(deep)) <= 2 * len(deep)
    wide = json.loads("[" * 15 + "1," * 2000 + "1" + "]" * 15)
    assert len(indented(wide)) <= 4 * len(json.dumps(wide)) + 200
    assert indented({"a": [1]}) == '{\n  "a": [\n    1\n  ]\n}'
    assert indented_text('"\\ud800"') == '"?"'


def test_no_cell_is_a_formula() -> None:
    assert lines([["=1+1@quay.example", "+cmd", "-1", "@x", "\tx", "ada", 5]]) == (
        b"'=1+1@quay.example,'+cmd,'-1,'@x,'\tx,ada,5\r\n"
    )


async def test_an_email_to_hidden_recipients_alone_breaks_no_list(pillarbox: World) -> None:
    team = await pillarbox.team()
    email_id = await team.send(to="ada@quay.example", subject="Hidden")
    await pillarbox.pool.execute("UPDATE emails SET to_list = '[]' WHERE id = $1", email_id)
    browser = await logged_in(pillarbox, await a_person(team, "ada@harbor.example"))
    for path in ("/dashboard", "/dashboard/emails", "/dashboard/emails?subject=hidden"):
        assert "Hidden recipients" in text_of(await browser.get(path)), path


@pytest.mark.parametrize(
    "path",
    [
        "/dashboard/emails?until=9999-12-31",
        "/dashboard/emails?since=0001-01-01",
        "/dashboard/emails/csv?until=9999-12-31",
        "/dashboard/logs?until=9999-12-31",
        "/dashboard/metrics?span=custom&since=0001-01-01&until=9999-12-31",
        "/dashboard/search?q=ada@quay.example/topics",
        "/dashboard/search?q=%00",
        "/dashboard?span=x",
        "/dashboard/emails?after=x",
    ],
)
async def test_odd_addresses_are_no_failures(pillarbox: World, path: str) -> None:
    team = await pillarbox.team()
    await team.post("/contacts", {"email": "ada@quay.example"})
    browser = await logged_in(pillarbox, await a_person(team, "ada@harbor.example"))
    assert (await browser.get(path)).status_code in (200, 422)


@pytest.mark.parametrize(
    "zone", ["posixrules", "localtime", "right/UTC", "../../etc/passwd", "Europe/Berlin"]
)
async def test_any_zone_of_the_cookie_shows_the_overview(pillarbox: World, zone: str) -> None:
    team = await pillarbox.team()
    browser = await logged_in(pillarbox, await a_person(team, "ada@harbor.example"))
    browser.cookies["pillarbox-zone"] = zone
    assert (await browser.get("/dashboard")).status_code == 200


async def test_members_of_a_blocked_team_look_and_take_access_away(pillarbox: World) -> None:
    team = await pillarbox.team()
    browser = await logged_in(pillarbox, await a_person(team, "ada@harbor.example", TeamRole.OWNER))
    await browser.get("/dashboard/send")
    await pillarbox.pool.execute("UPDATE teams SET status = 'blocked' WHERE id = $1", team.id)
    for path, fields in (
        ("/team/invitations", {"email": "x@quay.example", "role": "viewer"}),
        ("/team/keys", {"name": "New", "permission": "full_access"}),
        ("/team/name", {"name": "Other"}),
        ("/dashboard/send", {"to": "x@quay.example"}),
        ("/dashboard/suppressions/add", {"emails": "x@quay.example"}),
    ):
        answer = await browser.post(path, None, **fields)
        assert answer.status_code == 403, path
    assert (await browser.get("/dashboard")).status_code == 200
    key = (await team.db.values("SELECT id FROM api_keys WHERE team_id = $1"))[0]
    assert (await browser.post(f"/team/keys/{key}/delete", None)).headers[
        "location"
    ] == "/team/keys?done=deleted"


async def test_nothing_is_accepted_from_screens_during_maintenance(pillarbox: World) -> None:
    team = await pillarbox.team()
    browser = await logged_in(pillarbox, await a_person(team, "ada@harbor.example"))
    await browser.get("/dashboard/send")
    await maintenance.begin(pillarbox.pool, 60)
    await pillarbox.app.need(Maintenance).look()
    fields = {"from": "a@harbor.example", "to": "b@quay.example", "subject": "x", "text": "x", "key": "k1"}
    assert (await browser.post("/dashboard/send", None, **fields)).status_code == 503


async def test_a_person_has_a_number_of_pages_in_ten_seconds(pillarbox: World) -> None:
    team = await pillarbox.team()
    browser = await logged_in(pillarbox, await a_person(team, "ada@harbor.example"))
    answers = [(await browser.get("/dashboard/keys")).status_code for _ in range(REQUESTS + 1)]
    assert answers[:50] == [200] * 50
    assert answers[-1] == 429
