"""Imports over the API, from the form to the contacts (contact-imports.md 10)."""

from __future__ import annotations

from pathlib import Path

from kit.imports import contact, imported, importing_team


async def test_an_import_makes_contacts(database_url: str, tmp_path: Path) -> None:
    async with importing_team(database_url, tmp_path) as team:
        made = await imported(team, "email,first_name\nAda@Harbor.example,Ada\nlin@harbor.example,\n")
        assert made["counts"] == {"total": 2, "created": 2, "updated": 0, "skipped": 0, "failed": 0}
        ada = await contact(team, "ada@harbor.example")
        assert (ada["email"], ada["first_name"], ada["last_name"]) == ("ada@harbor.example", "Ada", None)
