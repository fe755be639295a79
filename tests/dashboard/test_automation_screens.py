"""Screens of automations: graph and runs, a run, simulation, the editor, versions, JSON, recipes."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4
from xml.etree import ElementTree

import httpx
import pytest

from kit.automation_rows import an_automation, chain, connection, lone_trigger, sleeping_runs, step
from kit.automation_runs import a_template, run_of, sent, walk
from kit.manual_world import manual_world
from kit.people import Visit, a_person, logged_in, text_of
from kit.screens import a_series, a_waiting_run
from kit.world import Team
from pillarbox.automations.overview import views
from pillarbox.dashboard.automations.drafts import GraphDraft
from pillarbox.people.roles import TeamRole

LIST = "/dashboard/automations"
DRAFT = re.compile(r'name="draft" value="([^"]*)"')
BASE = re.compile(r'name="base" value="([^"]*)"')
IMAGE = re.compile(r'class="graph-image" src="([^"]*)"')
OPEN = re.compile(r'name="open" value="([^"]*)"')
TWO_WAYS = {
    "steps": [
        step("start", "trigger", event_name="user.signed_up"),
        step("pays", "condition", type="rule", field="event.plan", operator="eq", value="pro"),
        step("thanks", "contact_update", first_name="Pro"),
        step("asks", "delay", duration="2 days"),
    ],
    "connections": [
        connection("start", "pays"),
        connection("pays", "thanks", "condition_met"),
        connection("pays", "asks", "condition_not_met"),
    ],
}


@dataclass
class Harbor:
    """A team and the browser of somebody who works there."""

    team: Team
    ada: Visit

    async def press(self, path: str, page: httpx.Response, do: str, **fields: str) -> httpx.Response:
        """Press a button of the editor that a page shows."""
        carried = {"draft": first(DRAFT, page), "open": first(OPEN, page), "do": do}
        return await self.ada.post(path, **{**carried, **fields})

    async def graph(self, automation_id: str) -> dict[str, Any]:
        return dict((await self.team.get(f"/automations/{automation_id}")).json())


def first(pattern: re.Pattern[str], page: httpx.Response) -> str:
    found = pattern.search(page.text)
    return unescape(found[1]) if found else ""


@pytest.fixture
@asynccontextmanager
async def harbor(database_url: str, tmp_path: Path) -> AsyncIterator[Harbor]:
    async with manual_world(database_url, tmp_path) as here:
        team = await here.team("Harbor")
        yield Harbor(team, await logged_in(here, await a_person(team, "ada@quay.example")))


async def test_the_page_says_how_many_runs_are_at_each_step(harbor: Harbor) -> None:
    team, ada = harbor.team, harbor.ada
    assert "No automation yet" in (await ada.get(LIST)).text
    automation = await an_automation(team, TWO_WAYS, name="<b>Pays</b>", status="enabled")
    for plan in ("pro", "free", "free"):
        await sent(team, "user.signed_up", email=f"{uuid4().hex[:6]}@quay.example", plan=plan)
    await walk(team.world)
    listed = await ada.get(LIST)
    assert "&lt;b&gt;Pays&lt;/b&gt;" in listed.text
    page = await ada.get(f"{LIST}/{automation}")
    text = text_of(page)
    assert "start user.signed_up 3 reached" in text
    assert "asks 2 days 2 reached · 2 waiting" in text
    assert "thanks first_name 1 reached · 1 ended" in text
    assert "The figures are of all runs" in text
    runs = text_of(await ada.get(f"{LIST}/{automation}/runs?status=running"))
    assert "Running 2" in runs
    assert "Completed 1" in runs


async def test_a_run_shows_its_path_and_why_it_waits(harbor: Harbor) -> None:
    team, ada = harbor.team, harbor.ada
    automation = await an_automation(team, TWO_WAYS, status="enabled")
    await sent(team, "user.signed_up", plan="free")
    await walk(team.world)
    run = await run_of(team, automation)
    page = await ada.get(f"{LIST}/{automation}/runs/{run['id']}")
    text = text_of(page)
    assert "Run of ada@quay.example" in text
    assert "It waits in asks , until" in text
    assert "not met" in text
    assert '"plan": "free"' in unescape(page.text)
    assert page.text.count('class="way taken"') == 1
    await ada.send(f"{LIST}/{automation}", f"{LIST}/{automation}/stop")
    assert "The automation was stopped" in text_of(await ada.get(f"{LIST}/{automation}/runs/{run['id']}"))
    stopped = text_of(await ada.get(f"{LIST}/{automation}"))
    assert "asks 2 days 1 reached start" not in stopped
    assert "waiting" not in stopped.partition("The figures are of")[0].partition("Graph")[2]
    assert "1 ended" not in stopped


async def test_a_run_that_failed_says_why(harbor: Harbor) -> None:
    team, ada = harbor.team, harbor.ada
    template = await a_template(team)
    mail = step("mail", "send_email", template={"id": template})
    graph = chain(step("start", "trigger", event_name="e"), mail)
    automation = await an_automation(team, graph, status="enabled")
    await team.call("DELETE", f"/templates/{template}")
    await sent(team, "e")
    await walk(team.world)
    run = await run_of(team, automation)
    assert "The step mail failed:" in text_of(await ada.get(f"{LIST}/{automation}/runs/{run['id']}"))


async def test_it_is_enabled_disabled_duplicated_and_deleted_by_name(harbor: Harbor) -> None:
    team, ada = harbor.team, harbor.ada
    automation = await an_automation(team, name="Series")
    here = f"{LIST}/{automation}"
    for status in ("enabled", "disabled"):
        base = first(BASE, await ada.get(here))
        await ada.follow(await ada.send(here, f"{here}/status", status=status, base=base))
        assert (await harbor.graph(automation))["status"] == status
    copied = await ada.follow(await ada.post(f"{here}/duplicate"))
    assert "Series (copy)" in copied.text
    assert (await ada.post(f"{here}/delete", typed_name="Other")).status_code == 422
    deleted = await ada.follow(await ada.post(f"{here}/delete", typed_name="Series"))
    assert "The automation is deleted." in deleted.text
    assert (await ada.get(here)).status_code == 404


async def test_what_cannot_be_enabled_says_why(harbor: Harbor) -> None:
    here = f"{LIST}/{await a_series(harbor.team)}"
    base = first(BASE, await harbor.ada.get(here))
    answer = await harbor.ada.send(here, f"{here}/status", status="enabled", base=base)
    assert answer.status_code == 422
    assert "There is no template" in answer.text


async def test_an_automation_is_made_step_by_step_without_losing_a_word(harbor: Harbor) -> None:
    ada, new = harbor.ada, f"{LIST}/new"
    page = await ada.get(new)
    name = {"name": "Welcome"}
    page = await harbor.press(new, page, "add:0:default", **name, key="start", event_name="a.b", **delay())
    page = await harbor.press(new, page, "keep", **name, key="no blank", duration="soon")
    assert page.status_code == 422
    assert 'value="no blank"' in page.text
    assert 'value="soon"' in page.text
    page = await harbor.press(new, page, "save", **name, key="waits", duration="soon")
    assert page.status_code == 422
    assert "steps[1].config.duration" in page.text
    assert 'value="soon"' in page.text
    done = await harbor.press(new, page, "save", **name, key="waits", duration="2 days")
    automation = done.headers["location"].rpartition("/")[2].partition("?")[0]
    graph = await harbor.graph(automation)
    assert graph["name"] == "Welcome"
    assert [(one["key"], one["config"]) for one in graph["steps"]] == [
        ("start", {"event_name": "a.b"}),
        ("waits", {"duration": "2 days"}),
    ]
    assert graph["connections"] == [{"from": "start", "to": "waits", "type": "default"}]


def delay() -> dict[str, str]:
    return {"kind:default": "delay"}


async def test_steps_are_connected_renamed_and_removed(harbor: Harbor) -> None:
    automation = await an_automation(harbor.team, TWO_WAYS)
    path = f"{LIST}/{automation}/edit"
    page = await harbor.ada.get(f"{path}?step=2")
    typed = {"name": "Pays", "key": "thank-you", "first_name": "Ada", "properties": ""}
    page = await harbor.press(path, page, "connect:2:default", **typed, **{"to:default": "asks"})
    page = await harbor.press(path, page, "open:1", **typed)
    rule = {"field": "event.plan", "operator": "eq", "value": "pro"}
    page = await harbor.press(path, page, "disconnect:1:condition_not_met:asks", key="pays", name="P", **rule)
    page = await harbor.press(path, page, "open:0", key="pays", name="Pays", **rule)
    done = await harbor.press(path, page, "save", key="start", name="Pays", event_name="user.signed_up")
    assert done.status_code == 303, done.text
    graph = await harbor.graph(automation)
    assert graph["steps"][2] == step("thank-you", "contact_update", first_name="Ada")
    assert [(one["from"], one["to"]) for one in graph["connections"]] == [
        ("start", "pays"),
        ("pays", "thank-you"),
        ("thank-you", "asks"),
    ]
    assert (await views.heading_of(harbor.team.db, UUID(automation))).version == 2
    versions = await harbor.ada.get(f"{LIST}/{automation}/versions?version=1")
    assert "Version 2" in text_of(versions)
    old = await harbor.ada.post(f"{LIST}/{automation}/versions/open", version="1")
    await harbor.press(path, old, "save", name="Pays")
    connections = [{"type": "default", **one} for one in TWO_WAYS["connections"]]
    assert (await harbor.graph(automation))["connections"] == connections


async def test_two_people_do_not_undo_each_other(harbor: Harbor) -> None:
    automation = await an_automation(harbor.team, TWO_WAYS, name="Pays")
    path = f"{LIST}/{automation}/edit"
    hers, his = await harbor.ada.get(path), await harbor.ada.get(path)
    assert (await harbor.press(path, hers, "save", name="Hers")).status_code == 303
    refused = await harbor.press(path, his, "save", name="His")
    assert refused.status_code == 409
    assert "Somebody else was quicker" in refused.text
    assert 'value="His"' in refused.text
    assert (await harbor.graph(automation))["name"] == "Hers"
    assert (await harbor.press(path, refused, "overwrite", name="His")).status_code == 303
    assert (await harbor.graph(automation))["name"] == "His"


async def test_saving_an_enabled_automation_disables_it(harbor: Harbor) -> None:
    automation = await an_automation(harbor.team, TWO_WAYS, status="enabled")
    path = f"{LIST}/{automation}/edit"
    page = await harbor.ada.get(path)
    assert "Saving disables it" in page.text
    saved = await harbor.ada.follow(await harbor.press(path, page, "save", name="Other"))
    assert "saved and disabled" in saved.text
    assert (await harbor.graph(automation))["status"] == "disabled"


async def test_json_goes_out_and_in(harbor: Harbor) -> None:
    ada = harbor.ada
    automation = await an_automation(harbor.team, TWO_WAYS, name="Pays")
    file = await ada.get(f"{LIST}/{automation}/json")
    assert "attachment" in file.headers["content-disposition"]
    made = await ada.follow(await ada.send(f"{LIST}/import", json=file.text))
    assert "The automation is made." in made.text
    wrong = await ada.post(f"{LIST}/import", json="{oh")
    assert wrong.status_code == 422
    assert "{oh" in wrong.text
    source = await ada.get(f"{LIST}/{automation}/source")
    base = re.search(r'name="base" value="([^"]*)"', source.text)
    assert base is not None
    changed = json.dumps({**json.loads(file.text), "name": "Changed"})
    fields = {"json": changed, "base": unescape(base[1]), "do": "save"}
    assert (await ada.post(f"{LIST}/{automation}/source", **fields)).status_code == 303
    conflict = await ada.post(f"{LIST}/{automation}/source", **fields)
    assert conflict.status_code == 409
    assert (await harbor.graph(automation))["name"] == "Changed"


async def test_a_recipe_brings_what_it_needs(harbor: Harbor) -> None:
    ada = harbor.ada
    for name in ("welcome", "dunning", "winning-back", "offer"):
        fields = {"name": name, "makes": "yes", "from": "Harbor <hi@harbor.example>", "segment": ""}
        made = await ada.send(f"{LIST}/recipes?name={name}", f"{LIST}/recipes", **fields)
        assert made.status_code == 303, made.text
        here = made.headers["location"].partition("?")[0]
        base = first(BASE, await ada.get(here))
        enabled = await ada.post(f"{here}/status", status="enabled", base=base)
        assert enabled.status_code == 303, text_of(enabled)
    assert (await ada.get(f"{LIST}/recipes?name=none")).status_code == 404


async def test_a_simulation_shows_steps_and_mails_and_sends_nothing(harbor: Harbor) -> None:
    team = harbor.team
    for alias in ("welcome", "first-steps", "advice"):
        await a_template(team, alias=alias, subject=f"About {alias}")
    here = f"{LIST}/{await a_series(team)}/simulate"
    fields = {"contact": "grace@quay.example", "payload": '{"plan": "pro"}', "then": "5 hours: user.began"}
    page = await harbor.ada.send(here, **fields)
    text = text_of(page)
    assert "Completed after 1 d 5 h" in text
    assert "About welcome" in text
    assert "About advice" in text
    assert "About first-steps" not in text
    assert (await team.get("/emails")).json()["data"] == []
    assert (await team.get("/contacts")).json()["data"] == []
    for wrong in ({"contact": "nobody"}, {"payload": "[1]"}, {"then": "soon"}):
        refused = await harbor.ada.post(here, **{**fields, **wrong})
        assert refused.status_code == 422, wrong
        assert "5 hours" in refused.text or "then" in wrong


async def test_the_search_finds_automations_and_events(harbor: Harbor) -> None:
    automation = await an_automation(harbor.team, name="Welcome <i>series</i>")
    await harbor.team.post("/events", {"name": "user.signed_up"})
    found = await harbor.ada.get("/dashboard/search?q=SERIES")
    assert f"{LIST}/{automation}" in found.text
    assert "/dashboard/events/" in (await harbor.ada.get("/dashboard/search?q=signed_up")).text
    assert f"{LIST}/{automation}" in (await harbor.ada.get(f"/dashboard/search?q={automation}")).text


async def test_only_the_graph_that_was_seen_is_enabled(harbor: Harbor) -> None:
    automation = await an_automation(harbor.team, TWO_WAYS)
    here = f"{LIST}/{automation}"
    page = await harbor.ada.get(here)
    await harbor.team.call("PATCH", f"/automations/{automation}", lone_trigger("other"))
    refused = await harbor.ada.post(f"{here}/status", status="enabled", base=first(BASE, page))
    assert refused.status_code == 409
    assert "changed meanwhile" in refused.text
    assert (await harbor.graph(automation))["status"] == "disabled"
    again = await harbor.ada.post(f"{here}/status", status="enabled", base=first(BASE, refused))
    assert again.status_code == 303


HALF = r'{"name": "\ud800", "steps": [], "connections": []}'


async def test_what_is_no_json_of_the_api_is_refused_where_it_is_typed(harbor: Harbor) -> None:
    """Half of a surrogate pair, NaN, and very deep values."""
    ada, automation = harbor.ada, await an_automation(harbor.team, TWO_WAYS)
    here = f"{LIST}/{automation}"
    await ada.get(here)
    deep = '{"a":' * 800 + "1" + "}" * 800
    for text in (HALF, '{"a": NaN}', deep):
        assert (await ada.post(f"{LIST}/import", json=text)).status_code == 422
        assert (await ada.post(f"{here}/source", json=text, do="save")).status_code == 422
        event = {"name": "e", "to": "ben@quay.example", "payload": text}
        assert (await ada.post("/dashboard/events/send", **event)).status_code == 422
        simulated = {"contact": "ben@quay.example", "payload": text}
        assert (await ada.post(f"{here}/simulate", **simulated)).status_code == 422
        page = await ada.get(f"{here}/edit?step=1")
        typed = {"name": "Pays", "key": "pays", "as_json": "yes", "rule_json": text}
        assert (await harbor.press(f"{here}/edit", page, "keep", **typed)).status_code == 422
        rows = {"name": "Pays", "key": "pays", "field": "event.plan", "operator": "eq", "value": text}
        assert (await harbor.press(f"{here}/edit", page, "keep", **rows)).status_code == 200


async def test_odd_drafts_and_addresses_are_no_failures(harbor: Harbor) -> None:
    ada, automation = harbor.ada, await an_automation(harbor.team, TWO_WAYS)
    here = f"{LIST}/{automation}"
    for version in ("99999999999999999999", "0", "x", "%C2%B2"):
        assert (await ada.get(f"{here}/json?version={version}")).status_code in (404, 422), version
        assert (await ada.get(f"{here}/versions?version={version}")).status_code in (404, 422), version
    assert (await ada.get("/dashboard/events/latest?name=%00")).status_code in (200, 400, 422)
    segment = (await harbor.team.post("/segments", {"name": "All"})).json()["id"]
    for config in ({"segment_id": f"{segment}/contacts"}, {"segment_id": "../x?y"}, {"segment_id": ""}):
        draft = GraphDraft("x", [step("in", "add_to_segment", **config)], [])
        page = await ada.post(f"{here}/edit", draft=draft.packed(), name="x", do="open:0")
        assert page.status_code == 200, config
    for steps in ([{"key": "a", "type": []}], [{"key": "\ud800", "type": "delay"}]):
        odd = await ada.post(f"{here}/edit", draft=GraphDraft("x", steps, []).packed(), name="x")
        assert odd.status_code == 422


async def test_what_does_not_fit_into_the_editor_loses_nothing(harbor: Harbor) -> None:
    path = f"{LIST}/{await an_automation(harbor.team, TWO_WAYS)}/edit"
    page = await harbor.ada.get(f"{path}?step=1")
    rule = {"type": "rule", "field": "event.plan", "operator": "eq", "value": "x" * 300_000}
    typed = {"name": "Pays", "key": "pays", "as_json": "yes", "rule_json": json.dumps(rule)}
    page = await harbor.press(path, page, "keep", **typed)
    assert page.status_code == 422
    assert "too large for the editor" in page.text
    assert "x" * 300_000 in page.text
    again = await harbor.press(path, page, "close", name="Pays", key="pays", field="event.plan", value="pro")
    assert again.status_code == 200
    assert "asks" in again.text


async def test_a_viewer_changes_nothing_and_strangers_see_nothing(harbor: Harbor) -> None:
    team = harbor.team
    automation = await a_series(team)
    run = await a_waiting_run(team)
    viewer = await logged_in(team.world, await a_person(team, "vi@quay.example", TeamRole.VIEWER))
    here = f"{LIST}/{automation}"
    assert "Delete" not in text_of(await viewer.get(here))
    other = await team.world.team("Quay")
    ben = await logged_in(team.world, await a_person(other, "ben@quay.example"))
    await ben.get("/account")
    posts = ("status", "stop", "duplicate", "delete", "edit", "source", "simulate", "versions/open")
    for path in posts:
        assert (await viewer.post(f"{here}/{path}")).status_code == 403, path
        answer = await ben.post(f"{here}/{path}", version="1", json="{}", contact="a@b.example", do="save")
        assert answer.status_code == 404, path
    assert (await viewer.get(f"{here}/edit")).status_code == 403
    assert (await ben.get(f"{here}/runs/{run}")).status_code == 404
    assert (await ben.get(f"{here}/json")).status_code == 404
    foreign = await an_automation(other)
    assert (await ben.get(f"{LIST}/{foreign}/runs/{run}")).status_code == 404


async def test_the_largest_graph_is_drawn_within_bounds(harbor: Harbor) -> None:
    names = [f"s{number}" for number in range(149)]
    steps = [
        step("start", "trigger", event_name="e"),
        *(step(name, "delay", duration="1 h") for name in names),
    ]
    links = [connection("start", name) for name in names[:30]]
    links += [connection(names[place], names[place + 30]) for place in range(119)]
    links += [connection(names[place], names[place + 60]) for place in range(89)]
    links += [connection(names[place], names[place + 90]) for place in range(59)]
    automation = await an_automation(harbor.team, {"steps": steps, "connections": links})
    [run, *_] = await sleeping_runs(harbor.team, automation, 3)
    here = f"{LIST}/{automation}"
    for path in ("", "?from=100", "/edit", "/edit?step=70", "/versions", "/simulate", f"/runs/{run}"):
        page = await harbor.ada.get(f"{here}{path}")
        assert page.status_code == 200
        assert len(page.content) < 60_000, (path, len(page.content))
    assert "s99" in text_of(await harbor.ada.get(f"{here}?from=100"))
    simulated = await harbor.ada.post(f"{here}/simulate", contact="ben@quay.example", payload="{}")
    assert len(simulated.content) < 60_000
    for page in (await harbor.ada.get(here), simulated, await harbor.ada.get(f"{here}/runs/{run}")):
        picture = await harbor.ada.get(first(IMAGE, page))
        assert picture.headers["content-type"] == "image/svg+xml"
        assert "private" in picture.headers["cache-control"]
        root = ElementTree.fromstring(picture.text)
        assert len(root.findall("{http://www.w3.org/2000/svg}a")) == 150
        assert ("is-completed" in picture.text) == (page is simulated)
    german = await harbor.ada.get(here, **{"accept-language": "de"})
    assert first(IMAGE, german) != first(IMAGE, await harbor.ada.get(here))
    assert "Verzögerung" in (await harbor.ada.get(first(IMAGE, german))).text
    other = await harbor.ada.get(first(IMAGE, simulated).replace("states=3", "states=9"))
    assert "is-completed" not in other.text
    edited = await harbor.ada.get(f"{here}/edit?step=70")
    assert edited.text.count("edit-") < 90
    opened = await harbor.press(
        f"{here}/edit", edited, "open_other", name="x", key="s69", duration="1 h", other="149"
    )
    assert 'value="s148"' in opened.text
    ben = await logged_in(
        harbor.team.world, await a_person(await harbor.team.world.team("Quay"), "b@quay.example")
    )
    assert (await ben.get(first(IMAGE, simulated))).status_code == 404
