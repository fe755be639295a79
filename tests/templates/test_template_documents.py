"""Documents of templates and their versions (templates.md 10 and 11)."""

from __future__ import annotations

from typing import Any

from kit.world import Team
from templates.conftest import Place
from templates.test_templates import a_team, made

BLOCKS: dict[str, Any] = {
    "kind": "blocks",
    "blocks": [
        {"type": "heading", "text": "Hello {{{NAME|you}}}"},
        {"type": "button", "text": "Open", "href": "https://harbor.example/{{{ORDER}}}"},
    ],
}


async def put(team: Team, template_id: str, document: dict[str, Any], **fields: Any) -> Any:
    return await team.call("PUT", f"/templates/{template_id}/document", {"document": document, **fields})


async def test_a_document_is_kept_beside_the_html_that_is_made_of_it(place: Place) -> None:
    async with a_team(place) as team:
        template_id = await made(team)
        answer = await put(team, template_id, BLOCKS, subject="For {{{NAME}}}")
        assert answer.status_code == 200, answer.text
        shown = (await team.get(f"/templates/{template_id}")).json()
        assert "Hello {{{NAME|you}}}" in shown["html"]
        assert "https://harbor.example/{{{ORDER}}}" in shown["html"]
        assert "Open: https://harbor.example/{{{ORDER}}}" in shown["text"]
        assert [variable["key"] for variable in shown["variables"]] == ["NAME", "ORDER"]
        assert "document" not in shown
        document = (await team.get(f"/templates/{template_id}/document")).json()
        assert document["document"]["blocks"][0]["text"] == "Hello {{{NAME|you}}}"
        assert document["html"] == shown["html"]


async def test_html_over_the_api_makes_it_a_template_of_html(place: Place) -> None:
    async with a_team(place) as team:
        template_id = await made(team)
        await put(team, template_id, BLOCKS)
        await team.call("PATCH", f"/templates/{template_id}", {"subject": "Other"})
        assert (await team.get(f"/templates/{template_id}/document")).json()["document"]["kind"] == "blocks"
        await team.call("PATCH", f"/templates/{template_id}", {"html": "<p>Mine</p>"})
        document = (await team.get(f"/templates/{template_id}/document")).json()["document"]
        assert (document["kind"], document["html"]) == ("html", "<p>Mine</p>")


async def test_of_two_who_edit_the_second_is_told(place: Place) -> None:
    async with a_team(place) as team:
        template_id = await made(team)
        revision = (await team.get(f"/templates/{template_id}/document")).json()["revision"]
        first = await put(team, template_id, BLOCKS, revision=revision)
        assert first.status_code == 200
        second = await put(team, template_id, {"kind": "markdown", "text": "Mine"}, revision=revision)
        assert (second.status_code, second.json()["name"]) == (409, "conflict")
        kept = (await team.get(f"/templates/{template_id}/document")).json()
        assert (kept["document"]["kind"], kept["revision"]) == ("blocks", first.json()["revision"])


async def test_published_versions_stay_and_come_back(place: Place) -> None:
    async with a_team(place) as team:
        template_id = await made(team)
        for text in ("One", "Two", "Three"):
            await put(team, template_id, {"kind": "markdown", "text": text})
            assert (await team.post(f"/templates/{template_id}/publish")).status_code == 200
        await put(team, template_id, {"kind": "markdown", "text": "Four"})
        versions = (await team.get(f"/templates/{template_id}/versions")).json()["data"]
        kinds = [(version["is_draft"], version["is_published"]) for version in versions]
        assert kinds == [(True, False), (False, True), (False, False), (False, False)]
        path = f"/templates/{template_id}/versions/{versions[-1]['id']}/restore"
        assert (await team.post(path)).status_code == 200
        document = (await team.get(f"/templates/{template_id}/document")).json()["document"]
        assert document == {"kind": "markdown", "text": "One", "preheader": "", "language": "en"}
        copy = (await team.post(f"/templates/{template_id}/duplicate")).json()["id"]
        assert (await team.get(f"/templates/{copy}/document")).json()["document"] == document


async def test_documents_that_no_mail_can_be_made_of_are_refused(place: Place) -> None:
    refused: list[dict[str, Any]] = [
        {"kind": "letter"},
        {"kind": "blocks", "blocks": [{"type": "heading", "level": 9}]},
        {"kind": "blocks", "blocks": [{"type": "columns", "columns": [[]]}]},
        {"kind": "mjml", "source": "<mjml><mj-body><mj-text>"},
        {"kind": "mjml", "source": "<mjml><mj-body><mj-raw><script>x</script></mj-raw></mj-body></mjml>"},
        {"kind": "html", "html": '<a href=" java&#115;cript:x">x</a>'},
        {"kind": "html", "html": "<img src=x onerror=alert(1)>"},
    ]
    async with a_team(place) as team:
        template_id = await made(team)
        before = (await team.get(f"/templates/{template_id}")).json()
        for document in refused:
            answer = await put(team, template_id, document)
            assert (answer.status_code, answer.json()["name"]) == (422, "validation_error"), document
        assert (await team.get(f"/templates/{template_id}")).json() == before
