"""What an import says about the subscription to everything, row by row (contact-imports.md 6)."""

from __future__ import annotations

from pathlib import Path

from kit.imports import imported, importing_team


async def test_rows_that_say_who_is_unsubscribed_beside_rows_that_do_not(
    database_url: str, tmp_path: Path
) -> None:
    """Each row is written, whichever kind it is, into new contacts and into those that exist."""
    async with importing_team(database_url, tmp_path) as team:
        for text, created in (
            ("email,unsubscribed\nann@quay.example,yes\nben@quay.example,\ncy@quay.example,no\n", 3),
            ("email,first_name,unsubscribed\nann@quay.example,Ann,\nben@quay.example,,unsubscribed\n", 0),
            ("email,unsubscribed\ndee@quay.example,1\n", 1),
        ):
            counts = (await imported(team, text))["counts"]
            assert (counts["created"], counts["failed"]) == (created, 0)
        listed = (await team.get("/contacts")).json()["data"]
        assert {one["email"]: one["unsubscribed"] for one in listed} == {
            "ann@quay.example": True,
            "ben@quay.example": True,
            "cy@quay.example": False,
            "dee@quay.example": True,
        }
