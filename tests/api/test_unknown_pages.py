"""A path that nothing has: browsers see a page, programs the error of the contract; and the icon of pages."""

from __future__ import annotations

import pytest

from kit.world import World

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"


@pytest.mark.parametrize("path", ["/nowhere", "/nowhere/at/all", "/emails/x/y/z", "/%ff", "/login/elsewhere"])
async def test_an_unknown_path(running: World, path: str) -> None:
    async with running.client(None) as client:
        page = await client.get(path, headers={"accept": BROWSER})
        assert page.status_code == 404
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert "content-security-policy" in page.headers
        assert "<h1" in page.text
        for accept in ("*/*", "application/json", "application/json, text/html", ""):
            answer = await client.get(path, headers={"accept": accept})
            assert answer.json() == {
                "statusCode": 404,
                "message": "The requested endpoint does not exist.",
                "name": "not_found",
            }


async def test_paths_of_the_api_answer_programs_alone(running: World) -> None:
    async with running.client(None) as client:
        answer = await client.get("/emails", headers={"accept": BROWSER})
        assert (answer.status_code, answer.json()["name"]) == (401, "missing_api_key")
        answer = await client.post("/nowhere", headers={"accept": "application/json"}, json={})
        assert answer.json()["name"] == "not_found"


async def test_the_icon(running: World) -> None:
    async with running.client(None) as client:
        icon = await client.get("/favicon.ico")
        assert (icon.status_code, icon.headers["content-type"]) == (200, "image/x-icon")
        assert icon.headers["cross-origin-resource-policy"] == "same-origin"
        assert icon.content.startswith(b"\x00\x00\x01\x00")
