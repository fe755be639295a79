"""What `/openapi.json` describes is what is answered: every route of the table, asked for real.

The routes come from the table and what they need from `kit.builders` and `kit.seed_data`, so a new slice is
held by this as soon as it has a route.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from kit.brought import CAPTURE_ROUTES, ROUTES, WEBHOOKS
from kit.builders import a_form, a_segment, a_wanted_broadcast, body_of, label, made_for
from kit.mcp_client import message, posted
from kit.oauth_flow import allowed, parameters, refresh, register, registration
from kit.openapi_document import OpenApiDocument
from kit.page_answers import is_page_of_people, page_answers
from kit.seed_data import CAPTURE_TOKEN, FORMS, HEADERS, KINDS, POSTED, QUERIES, rival, seed_team
from kit.tracking import tracking_path
from kit.unsubscribing import recipient
from kit.world import Team, World
from pillarbox.documents.images import FOLDER
from pillarbox.kernel.http.openapi import document
from pillarbox.kernel.http.routing import Access, BodyMode, Route
from pillarbox.kernel.storage.blobs import BlobStore

pytestmark = pytest.mark.sweep

TABLE = [*ROUTES, *CAPTURE_ROUTES]


async def test_every_answer_is_as_the_document_describes_it(pillarbox: World) -> None:
    """Status, media type, headers, every field, no field besides, and the fields in their order."""
    team = await seed_team(pillarbox)
    await rival(pillarbox, POSTED["/domains/claim"]["name"])
    description = OpenApiDocument((await team.get("/openapi.json")).json())
    found: dict[str, Any] = {}
    for entry in TABLE:
        for answer in await answers(pillarbox, team, entry):
            assert answer.status_code in (entry.status, *entry.also), f"{label(entry)}: {answer.text}"
            if faults := description.faults(entry.method, entry.path, answer):
                found[label(entry)] = faults
            is_page = is_page_of_people(entry) or entry.path.startswith("/capture")
            if "limit" in entry.query and not is_page:
                assert answer.json()["data"], f"{label(entry)}: an empty list says little"
    assert found == {}


async def test_webhooks_are_as_the_document_describes_them(pillarbox: World) -> None:
    team = await seed_team(pillarbox)
    description = OpenApiDocument((await team.get("/openapi.json")).json())
    seen = set()
    [*_, first] = (await team.get("/webhooks")).json()["data"]
    path = f"/webhooks/{first['id']}/events"
    for item in (await team.get(f"{path}?limit=100")).json()["data"]:
        payload = (await team.get(f"{path}/{item['id']}")).json()["payload"]
        seen.add(payload["type"])
        said = description.document["webhooks"][payload["type"]]["post"]["requestBody"]
        schema = said["content"]["application/json"]["schema"]
        assert description.errors(schema, payload) == []
        assert description.disorder(schema, payload, payload["type"]) == []
    assert seen == set(KINDS)


def test_every_field_of_an_answer_says_what_it_holds() -> None:
    """No answer, and no field of one, may be anything."""
    made = document(TABLE, events=WEBHOOKS)
    empty = [
        f"{name}.{field}"
        for name, schema in made["components"]["schemas"].items()
        for field, shown in schema.get("properties", {}).items()
        if not shown
    ]
    assert empty == []
    for entry in TABLE:
        assert entry.reply is not Any, label(entry)


# How the routes are asked -------------------------------------------------------------------------


async def answers(pillarbox: World, team: Team, entry: Route) -> list[httpx.Response]:
    """What the route says to requests that are right."""
    if entry.path.startswith("/capture"):
        return await captured(pillarbox, team, entry)
    if entry.path == "/mcp":
        return [await posted(team, message("tools/list"))]
    if is_page_of_people(entry):
        return await page_answers(team, entry)
    if entry.needs is Access.PUBLIC:
        if entry.path.startswith("/oauth/"):
            return [await program_answer(pillarbox, team, entry)]
        client, path = pillarbox.client(None), await public_path(team, entry)
        if entry.path == "/unsubscribe/{token}" and entry.method == "POST":
            forms = ({"List-Unsubscribe": "One-Click"}, {"confirm": "1"})
            return [await client.post(path, data=form) for form in forms]
        form = {"email": "ada@quay.example"} if entry.path == "/sign-up/{form}" else {}
        sent = {"data": form} if entry.method == "POST" else {}
        return [await client.request(entry.method, path, **sent)]
    if entry.intake is BodyMode.STREAM:
        return [await team.http.post(entry.path, files=FORMS[entry.path])]
    ids = await made_for(team, entry)
    if label(entry) == "POST /broadcasts":
        ids["segment_id"] = await a_segment(team, ids)
        return [await team.post(entry.path, a_wanted_broadcast(ids["segment_id"]))]
    body = body_of(entry.method, entry.path, ids) or POSTED.get(entry.path, {})
    headers = HEADERS.get(entry.path, {})
    paths = [entry.path.format(**ids) + query for query in QUERIES.get(entry.path, ("",))]
    times = 1 + len(entry.also)
    return [
        await team.http.request(entry.method, path, json=body if entry.takes_body else None, headers=headers)
        for path in paths
        for _ in range(times)
    ]


async def public_path(team: Team, entry: Route) -> str:
    if entry.path == "/files/{token}":
        email = await team.send(attachments=[{"content": "aGk=", "filename": "hi.txt"}])
        [item] = (await team.get(f"/emails/{email}/attachments")).json()["data"]
        return httpx.URL(item["download_url"]).path
    if entry.path == "/shared":
        shared = (await team.post(f"/emails/{await team.send()}/share")).json()
        return str(httpx.URL(shared["url"]).raw_path.decode())
    if entry.path == "/unsubscribe/{token}":
        return (await recipient(team)).path
    if entry.path.startswith("/t/"):
        return await tracking_path(team, entry.path)
    if entry.path.startswith("/sign-up/"):
        return await sign_up_path(team, entry.path)
    if entry.path == "/i/{image}":
        name = f"{'a' * 32}.png"
        await team.world.app.need(BlobStore).put(f"{FOLDER}/{name}", b"\x89PNG")
        return f"/i/{name}"
    assert not entry.parameters, f"{label(entry)}: say in {Path(__file__).name} where it leads"
    return entry.path


async def sign_up_path(team: Team, path: str) -> str:
    """Return the address of a form's page, or of the link in its mail."""
    form_id = await a_form(team, made := {})
    if path == "/sign-up/{form}":
        return httpx.URL((await team.get(f"/forms/{form_id}")).json()["url"]).path
    [mail] = (await team.get(f"/emails?to={made['email']}")).json()["data"]
    text = (await team.get(f"/emails/{mail['id']}")).json()["text"]
    return httpx.URL(re.findall(r"http\S+/sign-up/confirm/\S+", text)[0]).path


async def program_answer(pillarbox: World, team: Team, entry: Route) -> httpx.Response:
    """What a program is told, which brings no API key."""
    client = pillarbox.client(None)
    if entry.path == "/oauth/register":
        return await client.post(entry.path, json=registration(logo_uri="https://quill.example/logo.png"))
    if entry.path == "/oauth/authorize":
        made = await register(pillarbox)
        return await client.get(entry.path, params=parameters(made["client_id"]))
    program = await allowed(pillarbox)
    if entry.path == "/oauth/revoke":
        fields = {"client_id": program.client_id, "token": program.tokens["refresh_token"]}
        return await client.post(entry.path, data=fields)
    assert entry.path == "/oauth/token", f"{label(entry)}: say in {Path(__file__).name} what it is asked"
    return await refresh(pillarbox, program.client_id, program.tokens["refresh_token"])


async def captured(pillarbox: World, team: Team, entry: Route) -> list[httpx.Response]:
    client = pillarbox.client(CAPTURE_TOKEN)
    page = await client.get("/capture")
    if entry.method == "POST":
        form = page.text.partition('name="form" value="')[2].partition('"')[0]
        headers = {"origin": pillarbox.url}
        return [await client.request(entry.method, entry.path, data={"form": form}, headers=headers)]
    await team.send(subject="Captured", attachments=[{"content": "aGk=", "filename": "hi.txt"}])
    await pillarbox.turn()
    mails = (await client.get("/capture.json?subject=Captured")).json()["data"]
    values = {"mail": mails[0]["id"], "captured_id": mails[0]["id"], "number": "1"}
    if mails[0]["attachments"]:
        values["number"] = str(mails[0]["attachments"][0]["number"])
    path = entry.path.format(**values)
    found = [await client.request(entry.method, path)]
    if 303 in entry.also:
        found.append(await pillarbox.client(None).get(f"{path}?token={CAPTURE_TOKEN}"))
    return found
