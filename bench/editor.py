"""How long after the last key the mail beside the editor shows it, in Chromium: a document of 30 blocks, and
one of Markdown."""

from __future__ import annotations

import asyncio
import json
import shutil
import urllib.request
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from playwright.async_api import Browser, Page, async_playwright

from bench.kit.results import Report, at_most, ended
from bench.kit.server import KEY, Server, serving
from bench.pages import people
from pillarbox.dashboard.people.cookies import SESSION

TIMES: Final = 20
LIMIT: Final = 200.0
"""Milliseconds."""
PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome")
PARAGRAPH: Final = (
    "The tide comes at **noon**, and [the ferry](https://harbor.example/ferry) waits for it. "
) * 3
BLOCKS: Final[Mapping[str, Any]] = {
    "kind": "blocks",
    "blocks": [
        *[
            block
            for number in range(7)
            for block in (
                {"type": "heading", "text": f"Part {number}"},
                {"type": "text", "text": PARAGRAPH},
                {"type": "button", "text": "Read on", "href": "https://harbor.example/part"},
                {
                    "type": "columns",
                    "columns": [[{"type": "text", "text": "Left"}], [{"type": "text", "text": "Right"}]],
                },
            )
        ],
        {"type": "divider"},
        {"type": "footer", "unsubscribe": "Unsubscribe"},
    ],
}
MARKDOWN: Final[Mapping[str, Any]] = {"kind": "markdown", "text": f"# The tides\n\n{PARAGRAPH}\n\n" * 30}
TYPE: Final = """
(text) => new Promise((done) => {
  const field = document.querySelector("[data-block=heading] input[name=text], textarea[name=source]");
  const box = document.querySelector("[data-preview]");
  const before = box.dataset.shown;
  field.value = text + field.value.slice(text.length);
  const began = performance.now();
  field.dispatchEvent(new Event("input", { bubbles: true }));
  const look = () => {
    if (box.dataset.shown !== before) done(performance.now() - began);
    else setTimeout(look, 1);
  };
  look();
})
"""


def measure(report: Report) -> None:
    program = next((found for name in PROGRAMS if (found := shutil.which(name))), None)
    if program is None:
        report.skip("the editor", "there is no Chromium")
        return
    with serving(report, report.folder / "data") as server:
        team = UUID(server.sql("SELECT team_id::text FROM api_keys LIMIT 1")[0][0])
        asyncio.run(type_in_all(report, server, team, program))


async def type_in_all(report: Report, server: Server, team: UUID, program: str) -> None:
    """Type in a template of each kind."""
    (token,) = await people(server, team, 1)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for name, document in (("30 blocks", BLOCKS), ("Markdown", MARKDOWN)):
            page = await opened(browser, server, token, document)
            took = await typed(page, 5 if report.short else TIMES)
            report.result(f"{name}: from the last key to the mail, p50", took[len(took) // 2], "ms")
            report.result(
                f"{name}: from the last key to the mail, p95",
                took[min(len(took) - 1, round(len(took) * 0.95))],
                "ms",
                at_most(LIMIT),
            )
            await page.close()
        await browser.close()


async def opened(browser: Browser, server: Server, token: str, document: Mapping[str, Any]) -> Page:
    """Return a tab with the editor of a new template that has this document."""
    made = call(server, "POST", "/templates", {"name": "Tides", "html": "<p>x</p>"})
    call(server, "PUT", f"/templates/{made['id']}/document", {"document": document, "subject": "Tides"})
    context = await browser.new_context(viewport={"width": 1280, "height": 900})
    await context.add_cookies(
        [{"name": SESSION, "value": token, "url": server.url.replace("http:", "https:"), "secure": True}]
    )
    page = await context.new_page()
    await page.goto(f"{server.url}/dashboard/templates/{made['id']}")
    return page


async def typed(page: Page, times: int) -> list[float]:
    """Return the milliseconds of each time, the shortest first. The first time is not counted."""
    took = []
    for number in range(times + 1):
        took.append(float(await page.evaluate(TYPE, f"# Tide {number:03}")))
        # People stop for a moment; what is saved meanwhile does not count.
        await asyncio.sleep(0.4)
    return sorted(took[1:])


def call(server: Server, method: str, path: str, body: object) -> Any:
    """Return what the API answers."""
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{server.url}{path}", json.dumps(body).encode(), headers, method=method)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


if __name__ == "__main__":
    ended("editor", measure, __doc__)
