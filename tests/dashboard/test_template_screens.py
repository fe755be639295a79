"""Screens of templates: gallery, blocks without a script, saving by it, versions, test copies, theme."""

from __future__ import annotations

import json
import re
from typing import Any

from kit.people import Visit, a_person, logged_in, text_of
from kit.screens import a_template
from kit.world import Team, World
from pillarbox.people.roles import TeamRole

HERE = "/dashboard/templates"


async def browser(team: Team, role: TeamRole = TeamRole.OWNER) -> Visit:
    person = await a_person(team, f"{role.value}-{team.id.hex[-6:]}@harbor.example", role)
    return await logged_in(team.world, person)


def revision_of(page: str) -> str:
    found = re.search(r'data-revision="([0-9a-f]+)"', page)
    assert found is not None
    return found[1]


async def document_of(team: Team, template_id: str) -> dict[str, Any]:
    return dict((await team.get(f"/templates/{template_id}/document")).json()["document"])


async def test_a_template_begins_in_the_gallery_and_is_published(pillarbox: World) -> None:
    team = await pillarbox.team()
    ada = await browser(team)
    assert "No template yet" in text_of(await ada.get(HERE))
    page = await ada.send(f"{HERE}/new", HERE, name="Hello", start="welcome")
    template_id = page.headers["location"].rpartition("/")[2]
    shown = (await team.get(f"/templates/{template_id}")).json()
    assert (shown["name"], shown["status"]) == ("Hello", "draft")
    assert "Good to have you aboard" in shown["html"]
    page = await ada.get(f"{HERE}/{template_id}")
    assert "Look around" in page.text
    await ada.post(f"{HERE}/{template_id}/publish")
    assert (await team.get(f"/templates/{template_id}")).json()["status"] == "published"
    assert "Hello" in text_of(await ada.get(HERE))
    assert f"{HERE}/{template_id}" in (await ada.get("/dashboard/search?q=hell")).text


async def test_blocks_are_written_without_a_script(pillarbox: World) -> None:
    team = await pillarbox.team()
    ada = await browser(team)
    page = await ada.send(f"{HERE}/new", HERE, start="blocks")
    path = page.headers["location"]
    template_id = path.rpartition("/")[2]

    async def does(operation: str, place: str, **fields: str) -> None:
        revision = revision_of((await ada.get(path)).text)
        answer = await ada.post(
            f"{path}/block", revision=revision, operation=operation, place=place, **fields
        )
        assert answer.status_code == 303, answer.text

    await does("save", "0", text="Twelve <b>lanterns</b>", level="1", align="left")
    await does("add", "2", type="columns")
    await does("add", "2.1.0", type="button")
    await does("save", "2.1.0", text="Open", href="https://harbor.example", align="left")
    await does("up", "2", count="2")
    await does("delete", "2")
    blocks = (await document_of(team, template_id))["blocks"]
    assert [block["type"] for block in blocks] == ["heading", "columns", "footer"]
    assert blocks[1]["columns"][1][0]["text"] == "Open"
    frame = await ada.get(f"{path}/html")
    assert "Twelve &lt;b&gt;lanterns&lt;/b&gt;" in frame.text
    assert "sandbox" in frame.headers["content-security-policy"]


async def test_of_two_who_edit_nobody_loses_what_was_typed(pillarbox: World) -> None:
    team = await pillarbox.team()
    ada, ben = await browser(team), await browser(team, TeamRole.MEMBER)
    path = f"{HERE}/{await a_template(team)}"
    revision = revision_of((await ada.get(path)).text)
    await ben.get(path)
    written = {"kind": "markdown", "source": "Of Ada", "preheader": "Soon"}
    fields = {"document": json.dumps(written), "subject": "One", "revision": revision}
    saved = await ada.post(f"{path}/save", **fields)
    assert saved.status_code == 200
    assert saved.json()["revision"] != revision
    assert "unsubscribe" in saved.json()["checks"]
    late = await ben.post(
        f"{path}/save", **{**fields, "document": json.dumps({**written, "source": "Of Ben"})}
    )
    assert (late.status_code, late.json()["conflict"]) == (409, True)
    typed = await ben.post(f"{path}/content", source="Typed by Ben", subject="Two", revision=revision)
    assert typed.status_code == 422
    assert "Typed by Ben" in typed.text
    assert (await document_of(team, path.rpartition("/")[2]))["text"] == "Of Ada"


async def test_the_preview_is_what_a_contact_gets(pillarbox: World) -> None:
    team = await pillarbox.team()
    ada = await browser(team)
    await team.post("/contacts", {"email": "nell@quay.example", "first_name": "<i>Nell</i>"})
    path = f"{HERE}/{await a_template(team)}"
    assert "Hello &lt;i&gt;Nell&lt;/i&gt;" in (await ada.get(f"{path}/html?contact=nell@quay.example")).text
    assert "[ORDER_NO]" in (await ada.get(f"{path}/html")).text
    dark = (await ada.get(f"{path}/html?mode=dark")).text
    assert "prefers-color-scheme" not in dark
    assert "(min-width:0px)" in dark
    text = (await ada.get(f"{path}/html?view=text")).text
    assert "Follow it: https://harbor.example/[ORDER_NO]" in text
    await ada.get(path)
    written = {"kind": "markdown", "source": "Dear {{{FIRST_NAME|you}}} <script>alert(1)</script>"}
    unsaved = await ada.post(f"{path}/html", document=json.dumps(written), contact="nell@quay.example")
    assert "Dear &lt;i&gt;Nell" in unsaved.text
    assert "<script" not in unsaved.text
    assert (await document_of(team, path.rpartition("/")[2]))["kind"] == "blocks"


async def test_versions_are_compared_and_come_back(pillarbox: World) -> None:
    team = await pillarbox.team()
    ada = await browser(team)
    template_id = await a_template(team)
    path = f"{HERE}/{template_id}"
    older = (await team.get(f"/templates/{template_id}/versions")).json()["data"][1]["id"]
    page = text_of(await ada.get(f"{path}/versions?version={older}"))
    assert "− Subject: Your lanterns are on their way" in page
    assert "+ Subject: Your <i>twelve</i> lanterns are on their way" in page
    assert (await ada.post(f"{path}/restore", version=older)).status_code == 303
    blocks = (await document_of(team, template_id))["blocks"]
    assert blocks[0]["text"] == "Your lanterns are on their way"


async def test_a_test_copy_goes_to_several(pillarbox: World) -> None:
    team = await pillarbox.team()
    ada = await browser(team)
    path = f"{HERE}/{await a_template(team)}"
    await ada.get(path)
    answer = await ada.post(f"{path}/test", to="delivered@resend.dev, delivered+b@resend.dev", contact="")
    assert answer.status_code == 303, text_of(answer)
    emails = (await team.get("/emails")).json()["data"]
    assert sorted(email["to"][0] for email in emails) == ["delivered+b@resend.dev", "delivered@resend.dev"]
    assert emails[0]["subject"] == "[Test] Your <i>twelve</i> lanterns are on their way"
    assert (await ada.post(f"{path}/test", to="x@quay.example," * 11)).status_code == 422


async def test_settings_and_deletion(pillarbox: World) -> None:
    team = await pillarbox.team()
    ada = await browser(team)
    template_id = await a_template(team)
    path = f"{HERE}/{template_id}"
    await ada.get(f"{path}/settings")
    fields = {
        "name": "Shipped",
        "alias": "order-shipped",
        "type.ORDER_NO": "number",
        "fallback.ORDER_NO": "7",
    }
    assert (await ada.post(f"{path}/settings", **fields)).status_code == 303
    shown = (await team.get("/templates/order-shipped")).json()
    assert [(one["key"], one["type"], one["fallback_value"]) for one in shown["variables"]] == [
        ("ORDER_NO", "number", 7)
    ]
    refused = await ada.post(f"{path}/settings", **{**fields, "alias": "no good"})
    assert refused.status_code == 422
    assert "no good" in refused.text
    assert (await ada.post(f"{path}/delete", typed_name="shipped")).status_code == 422
    assert (await ada.post(f"{path}/delete", typed_name="Shipped")).status_code == 303
    assert (await team.get(f"/templates/{template_id}")).status_code == 404


async def test_viewers_and_other_teams_change_nothing(pillarbox: World) -> None:
    team, quay = await pillarbox.team(), await pillarbox.team("Quay")
    template_id = await a_template(team)
    path = f"{HERE}/{template_id}"
    viewer, stranger = await browser(team, TeamRole.VIEWER), await browser(quay)
    assert (await viewer.get(path)).status_code == 200
    assert (await viewer.post(f"{path}/save", document="{}")).status_code == 403
    assert (await viewer.post(f"{path}/publish")).status_code == 403
    assert (await stranger.get(path)).status_code == 404
    await stranger.get(HERE)
    for act in ("save", "block", "content", "publish", "duplicate", "delete", "test", "restore", "settings"):
        fields = {"document": json.dumps({"kind": "markdown"}), "version": template_id, "name": "x"}
        assert (await stranger.post(f"{path}/{act}", **fields)).status_code in (404, 409), act


async def test_the_theme_is_in_every_mail(pillarbox: World) -> None:
    team = await pillarbox.team()
    ada = await browser(team)
    page = await ada.get("/dashboard/mail-theme")
    fields = dict(re.findall(r'name="(\w+)" [^>]*?value="([^"]*)"', page.text))
    fields |= {"accent": "#aa3377", "font": "serif", "footer": "Harbor & Co"}
    fields.pop("csrf_token", None)
    assert (await ada.post("/dashboard/mail-theme", **fields)).status_code == 303
    html = (await team.get(f"/templates/{await a_template(team)}")).json()["html"]
    assert "#aa3377" in html
    assert "Georgia" in html
    assert (await ada.post("/dashboard/mail-theme", **{**fields, "text": "#fefefe"})).status_code == 422
    bad = await ada.post("/dashboard/mail-theme", **{**fields, "logo_url": "javascript:alert(1)"})
    assert bad.status_code == 422


async def test_a_draft_of_a_broadcast_is_written_in_the_editor(pillarbox: World) -> None:
    team = await pillarbox.team()
    ada, stranger = await browser(team), await browser(await pillarbox.team("Quay"))
    segment_id = (await team.post("/segments", {"name": "All"})).json()["id"]
    draft = {"segment_id": segment_id, "from": "hello@harbor.example", "subject": "News", "html": "<p>x</p>"}
    broadcast_id = (await team.post("/broadcasts", draft)).json()["id"]
    path = f"/dashboard/broadcasts/{broadcast_id}/editor"
    assert path in (await ada.get(f"/dashboard/broadcasts/{broadcast_id}")).text
    revision = revision_of((await ada.get(path)).text)
    written = {"kind": "markdown", "source": "Dear {{{FIRST_NAME|you}}}, **news**."}
    fields = {"document": json.dumps(written), "subject": "Tides", "revision": revision}
    saved = await ada.post(f"{path}/save", **fields)
    assert saved.status_code == 200, saved.text
    shown = (await team.get(f"/broadcasts/{broadcast_id}")).json()
    assert (shown["subject"], "<strong>news</strong>" in shown["html"]) == ("Tides", True)
    assert shown["text"].startswith("Dear {{{FIRST_NAME|you}}}, news.")
    assert (await ada.post(f"{path}/save", **fields)).status_code == 409
    revision = revision_of((await ada.get(path)).text)
    assert (await ada.post(f"{path}/content", revision=revision, kind="blocks")).status_code == 303
    revision = revision_of((await ada.get(path)).text)
    block = {"operation": "add", "place": "0", "type": "divider", "revision": revision}
    assert (await ada.post(f"{path}/block", **block)).status_code == 303
    copy = (await team.post(f"/broadcasts/{broadcast_id}/duplicate")).json()["id"]
    document = (await team.get(f"/broadcasts/{copy}/document")).json()["document"]
    assert [one["type"] for one in document["blocks"]] == ["divider", "html"]
    await team.call("PATCH", f"/broadcasts/{copy}", {"html": "<p>Mine</p>"})
    assert (await team.get(f"/broadcasts/{copy}/document")).json()["document"]["kind"] == "html"
    await stranger.get(HERE)
    assert (await stranger.post(f"{path}/save", **fields)).status_code == 404


async def test_saving_keeps_what_the_editor_does_not_show(pillarbox: World) -> None:
    team = await pillarbox.team()
    ada = await browser(team)
    path = f"{HERE}/{await a_template(team)}"
    template_id = path.rpartition("/")[2]
    put = f"/templates/{template_id}/document"

    async def saves(**document: Any) -> dict[str, Any]:
        revision = revision_of((await ada.get(path)).text)
        answer = await ada.post(f"{path}/save", document=json.dumps(document), revision=revision)
        assert answer.status_code == 200, answer.text
        return await document_of(team, template_id)

    await team.call("PUT", put, {"document": {"kind": "markdown", "text": "Moin", "language": "de"}})
    assert 'name="language" value="de"' in (await ada.get(path)).text
    assert (await saves(kind="markdown", source="Moin", language="de"))["language"] == "de"
    await team.call("PUT", put, {"document": {"kind": "html", "html": "<p>x</p>", "text": "By hand"}})
    assert "By hand</textarea>" in (await ada.get(path)).text
    assert (await saves(kind="html", source="<p>y</p>", text="By hand"))["text"] == "By hand"


async def test_a_refused_block_keeps_what_was_typed(pillarbox: World) -> None:
    team = await pillarbox.team()
    ada = await browser(team)
    path = f"{HERE}/{await a_template(team)}"
    revision = revision_of((await ada.get(path)).text)
    fields = {"operation": "save", "place": "0", "align": "left", "level": "1", "revision": revision}
    long = await ada.post(f"{path}/block", text="x" * 501, **fields)
    assert long.status_code == 422
    assert "x" * 501 in long.text
    await ada.post(f"{path}/block", text="Of Ben", **fields)
    late = await ada.post(f"{path}/block", text="Of Ada", **fields)
    assert late.status_code == 422
    assert "Of Ada</textarea>" in late.text


async def test_another_way_of_writing_begins_with_what_is_there(pillarbox: World) -> None:
    team = await pillarbox.team()
    ada = await browser(team)
    path = f"{HERE}/{await a_template(team)}"
    template_id = path.rpartition("/")[2]
    put = f"/templates/{template_id}/document"

    async def turns_into(kind: str) -> str:
        revision = revision_of((await ada.get(path)).text)
        answer = await ada.post(f"{path}/content", kind=kind, revision=revision)
        assert answer.status_code == 303, text_of(answer)
        return json.dumps(await document_of(team, template_id))

    mjml = await turns_into("mjml")
    assert "<mj-button" in mjml
    assert "{{{ORDER_NO}}}" in mjml
    await team.call("PUT", put, {"document": {"kind": "html", "html": "<p>Twelve &lt;b&gt;</p>"}})
    assert "Twelve &lt;b&gt;" in await turns_into("mjml")
    await team.call("PUT", put, {"document": {"kind": "html", "html": "<p>Twelve lanterns</p>"}})
    assert "Twelve lanterns" in await turns_into("markdown")


async def test_the_preview_says_what_is_wrong_with_a_document(pillarbox: World) -> None:
    team = await pillarbox.team()
    ada = await browser(team)
    path = f"{HERE}/{await a_template(team)}"
    await ada.get(path)
    for document in ({"kind": "mjml", "source": "<mjml><b>"}, {"kind": "markdown", "language": "?"}, []):
        answer = await ada.post(f"{path}/html", document=json.dumps(document))
        assert answer.status_code == 422
        assert "frame-ancestors 'self'" in answer.headers["content-security-policy"]
        assert "<nav" not in answer.text


async def test_settings_leave_variables_alone_that_their_form_did_not_show(pillarbox: World) -> None:
    team = await pillarbox.team()
    ada = await browser(team)
    template_id = await a_template(team)
    await ada.get(f"{HERE}/{template_id}/settings")
    variables = [{"key": key, "type": "string", "fallback_value": "soon"} for key in ("ORDER_NO", "LATER")]
    await team.call("PATCH", f"/templates/{template_id}", {"variables": variables})
    fields = {"name": "Shipped", "alias": "", "type.ORDER_NO": "string", "fallback.ORDER_NO": "7"}
    assert (await ada.post(f"{HERE}/{template_id}/settings", **fields)).status_code == 303
    shown = (await team.get(f"/templates/{template_id}")).json()["variables"]
    assert [(one["key"], one["fallback_value"]) for one in shown] == [
        ("ORDER_NO", "7"),
        ("LATER", "soon"),
    ]
    for number in ("nan", "inf", "-1e999"):
        fields = {"name": "x", "type.LATER": "number", "fallback.LATER": number}
        assert (await ada.post(f"{HERE}/{template_id}/settings", **fields)).status_code == 422, number


async def test_addresses_for_answers_of_a_draft_can_be_taken_away(pillarbox: World) -> None:
    team = await pillarbox.team()
    ada = await browser(team)
    segment_id = (await team.post("/segments", {"name": "All"})).json()["id"]
    draft = {"segment_id": segment_id, "from": "hello@harbor.example", "subject": "News", "html": "<p>x</p>"}
    created = await team.post("/broadcasts", {**draft, "reply_to": "ada@harbor.example"})
    broadcast_id = created.json()["id"]
    path = f"/dashboard/broadcasts/{broadcast_id}/editor"
    await ada.get(path)
    fields = {"document": json.dumps({"kind": "html", "source": "<p>Tides</p>"}), "reply_to": ""}
    assert (await ada.post(f"{path}/save", **fields)).status_code == 200
    shown = (await team.get(f"/broadcasts/{broadcast_id}")).json()
    assert (shown["reply_to"], shown["text"]) == (None, "Tides")
    assert (await team.get(f"/broadcasts/{broadcast_id}/document")).json()["document"]["text"] is None


async def test_the_steps_of_a_draft_and_its_editor_are_one_way(pillarbox: World) -> None:
    team = await pillarbox.team()
    ada = await browser(team)
    segment_id = (await team.post("/segments", {"name": "All"})).json()["id"]
    here = "/dashboard/broadcasts"
    heads = {"from": "hello@harbor.example", "subject": "News", "segment_id": segment_id}
    made = await ada.send(f"{here}/new", here, **heads)
    path, _, query = made.headers["location"].partition("?")
    assert (path.endswith("/editor"), query) == (True, "done=broadcast_created")
    draft = path.removesuffix("/editor")
    editor = (await ada.get(path)).text
    assert f"{draft}?step=audience&amp;done=broadcast_saved" in editor
    assert f"{draft}?step=review" in editor
    shown = (await ada.get(f"{draft}?step=content")).text
    opened = shown.partition('name="revision" value="')[2].partition('"')[0]
    written = json.dumps({"kind": "markdown", "source": "High water"})
    assert (await ada.post(f"{path}/save", document=written)).status_code == 200
    step = (await ada.get(f"{draft}?step=content")).text
    assert step.count(f'src="{path}/html"') == 2
    assert 'name="html"' not in step
    # A tab with this step that was open before changes the head alone.
    changed = {**heads, "subject": "Tides", "name": "", "revision": opened}
    assert (await ada.post(f"{draft}/content", **changed)).status_code == 303
    assert (await ada.post(f"{draft}/content", **changed)).status_code == 409
    broadcast_id = draft.rpartition("/")[2]
    document = (await team.get(f"/broadcasts/{broadcast_id}/document")).json()["document"]
    assert (document["kind"], document["text"]) == ("markdown", "High water")
    viewer = await browser(team, TeamRole.VIEWER)
    assert "Look at it in the editor" in (await viewer.get(draft)).text
    await team.post(f"/broadcasts/{broadcast_id}/send")
    sent = await ada.get(path)
    assert "data-add" not in sent.text
    assert "its content stays" in sent.text
