"""The settings of the page to unsubscribe, and the page as recipients see it then."""

from __future__ import annotations

from html import escape, unescape
from pathlib import Path

import pytest

from kit.audience import a_topic
from kit.people import Visit, a_person, logged_in
from kit.unsubscribing import PROXY, recipient
from kit.world import Team, World, world
from pillarbox.documents.colors import contrast, readable_on
from pillarbox.people.roles import TeamRole
from pillarbox.unsubscribe.page_settings import DEFAULT, SettingFault, checked

HERE = "/dashboard/unsubscribe-page"
EVIL = "</h1><script>alert(1)</script>"
CHOSEN = {
    "title": "Letters of the harbour",
    "text": "You hear from us\r\nonce a month.",
    "footer": "Pier 9, Harbour",
    "logo_url": "https://cdn.harbor.example/logo.png?v=2",
    "page_color": "#102030",
    "text_color": "#F0F0F0",
    "button_color": "#FFCC00",
}


async def an_admin(team: Team, role: TeamRole = TeamRole.ADMIN) -> Visit:
    return await logged_in(team.world, await a_person(team, f"{role.value}@harbor.example", role))


async def test_what_is_chosen_is_on_the_page_of_recipients(database_url: str, tmp_path: Path) -> None:
    async with world(database_url, tmp_path, started=False, trusted_proxy=PROXY) as pillarbox:
        team = await pillarbox.team("Harbor")
        ada = await recipient(team, await a_topic(team, name="Tides"))
        before = await ada.opens()
        assert "Email preferences" in before.answer.text
        assert "img-src data:;" in before.answer.headers["content-security-policy"]
        browser = await an_admin(team)
        done = await browser.follow(await browser.send(HERE, **CHOSEN))
        assert "The page is saved" in done.text
        for page in (await ada.opens(), await ada.posts(confirm=1)):
            policy = page.answer.headers["content-security-policy"]
            assert "<bdi>Letters of the harbour</bdi></h1>" in page.answer.text
            assert "You hear from us\nonce a month." in page.answer.text
            assert "Pier 9, Harbour" in page.answer.text
            assert 'src="https://cdn.harbor.example/logo.png?v=2"' in page.answer.text
            assert "img-src data: https://cdn.harbor.example;" in policy
            assert "--page: #102030; " in page.answer.text
            assert policy.count("'sha256-") == 2
            assert "unsafe" not in policy
        acts = [
            row["what"] for row in await pillarbox.pool.fetch("SELECT what FROM audit_entries ORDER BY id")
        ]
        assert acts[-1] == "unsubscribe_page.changed"
        await browser.send(HERE, **dict.fromkeys(CHOSEN, ""))
        assert await pillarbox.pool.fetchval("SELECT unsubscribe_page FROM teams") is None
        assert "Email preferences" in (await ada.opens()).answer.text


@pytest.mark.parametrize(
    ("field", "text", "fault"),
    [
        ("title", "x" * 101, SettingFault.TOO_LONG),
        ("text", "x" * 501, SettingFault.TOO_LONG),
        ("footer", "x" * 501, SettingFault.TOO_LONG),
        ("logo_url", "http://cdn.example/logo.png", SettingFault.NO_LOGO),
        ("logo_url", "https://ada@cdn.example/logo.png", SettingFault.NO_LOGO),
        ("logo_url", "https://cdn.example;script-src/x.png", SettingFault.NO_LOGO),
        ("logo_url", "https://cdn.example/a b.png", SettingFault.NO_LOGO),
        ("logo_url", "https://cdn.example/'x'.png", SettingFault.NO_LOGO),
        ("logo_url", "https://cdn.example/x.png#part", SettingFault.NO_LOGO),
        ("logo_url", "https://*/x.png", SettingFault.NO_LOGO),
        ("logo_url", "https://*.example/x.png", SettingFault.NO_LOGO),
        ("logo_url", "https://cdn.example:99999/x.png", SettingFault.NO_LOGO),
        ("logo_url", "https://127.0.0.1/x.png", SettingFault.NO_LOGO),
        ("logo_url", "https://localhost/x.png", SettingFault.NO_LOGO),
        ("logo_url", "javascript:alert(1)", SettingFault.NO_LOGO),
        ("logo_url", "https://[::1", SettingFault.NO_LOGO),
        ("logo_url", "https://cdn.example/" + "x" * 500, SettingFault.NO_LOGO),
        ("page_color", "red", SettingFault.NO_COLOR),
        ("page_color", "#fff", SettingFault.NO_COLOR),
        ("text_color", "#1f2328;", SettingFault.NO_COLOR),
        ("button_color", "#0b57b5}", SettingFault.NO_COLOR),
        ("text_color", "#777777", SettingFault.HARD_TO_READ),
        ("page_color", "#333333", SettingFault.HARD_TO_READ),
        ("button_color", "#dddddd", SettingFault.HARD_TO_READ),
    ],
)
async def test_a_field_that_is_no_good_is_named_and_nothing_is_saved(
    pillarbox: World, field: str, text: str, fault: SettingFault
) -> None:
    assert checked({**dict.fromkeys(CHOSEN, ""), field: text})[1] == {field: fault}
    browser = await an_admin(await pillarbox.team())
    answer = await browser.send(HERE, **{**dict.fromkeys(CHOSEN, ""), "title": "Kept", field: text})
    assert answer.status_code == 422
    assert f'id="{field}-wrong"' in answer.text
    assert text in unescape(answer.text)
    assert field == "title" or 'value="Kept"' in answer.text
    assert await pillarbox.pool.fetchval("SELECT unsubscribe_page FROM teams") is None


def test_the_contrast_is_that_of_wcag() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    assert contrast("#0b57b5", "#0b57b5") == 1
    assert (readable_on("#ffcc00"), readable_on("#0b57b5")) == ("#000000", "#ffffff")


async def test_a_preview_shows_what_was_typed_and_stores_nothing(pillarbox: World) -> None:
    browser = await an_admin(await pillarbox.team())
    page = await browser.send(HERE, f"{HERE}/html", **{**CHOSEN, "title": EVIL, "text_color": "none"})
    assert page.status_code == 200
    assert "&lt;script&gt;alert(1)" in page.text
    assert "#102030" not in page.text
    policy = page.headers["content-security-policy"]
    assert "frame-ancestors 'self'; sandbox" in policy
    assert "https://cdn.harbor.example" in policy
    assert "Email preferences" in (await browser.get(f"{HERE}/html")).text
    assert await pillarbox.pool.fetchval("SELECT unsubscribe_page FROM teams") is None


@pytest.mark.parametrize("role", [TeamRole.MEMBER, TeamRole.VIEWER])
async def test_only_who_manages_the_team_changes_the_page(pillarbox: World, role: TeamRole) -> None:
    browser = await an_admin(await pillarbox.team(), role)
    assert HERE not in (await browser.get("/dashboard")).text
    for path in (HERE, f"{HERE}/html"):
        assert (await browser.get(path)).status_code == 403
        assert (await browser.post(path, **CHOSEN)).status_code == 403
    assert await pillarbox.pool.fetchval("SELECT unsubscribe_page FROM teams") is None


def test_a_logo_keeps_its_address_and_gives_its_origin() -> None:
    settings, faults = checked({**CHOSEN, "logo_url": "https://CDN.Harbor.example:8443/a/b.svg"})
    assert faults == {}
    assert settings.logo_url == "https://cdn.harbor.example:8443/a/b.svg"
    assert settings.logo_origin == "https://cdn.harbor.example:8443"
    assert checked(dict.fromkeys(CHOSEN, "")) == (DEFAULT, {})


async def test_readers_of_a_language_get_the_texts_for_it(database_url: str, tmp_path: Path) -> None:
    async with world(database_url, tmp_path, started=False, trusted_proxy=PROXY) as pillarbox:
        team = await pillarbox.team("Harbor")
        ada = await recipient(team, await a_topic(team, name="Tides"))
        browser = await an_admin(team)
        german = {"title.de": "Briefe vom <b>Hafen</b>", "text.de": "Einmal im Monat."}
        saved = await browser.follow(await browser.send(HERE, **CHOSEN, **german))
        assert 'value="Briefe vom &lt;b&gt;Hafen&lt;/b&gt;"' in saved.text
        client = pillarbox.client(None)
        for accepted, title, text in (
            ("de-AT,de;q=0.9,en;q=0.5", german["title.de"], "Einmal im Monat."),
            ("fr,en;q=0.5", CHOSEN["title"], "once a month."),
        ):
            answer = await client.get(ada.path, headers={"accept-language": accepted})
            assert f"<bdi>{escape(title)}</bdi></h1>" in answer.text
            assert text in answer.text
            assert "Pier 9, Harbour" in answer.text
        shown = await browser.get(f"{HERE}/html?language=de")
        assert "Einmal im Monat." in shown.text
        assert '<html lang="de"' in shown.text
        typed = await browser.send(
            HERE, f"{HERE}/html", **{**CHOSEN, "title.de": "x" * 101, "text.de": "Neu"}, language="de"
        )
        assert "<bdi>Letters of the harbour</bdi></h1>" in typed.text
        assert "Neu" in typed.text
        refused = await browser.send(HERE, **{**CHOSEN, **german, "footer.de": "x" * 501})
        assert refused.status_code == 422
        assert 'id="footer.de-wrong"' in refused.text
        assert "Briefe vom" in (await browser.get(HERE)).text
