"""Turns forms of domains into bodies for the API."""

from __future__ import annotations

from typing import Any, Final

from pillarbox.dashboard.people.page_visits import Form

TEXTS_OF_FORM: Final = ("name", "custom_return_path", "tracking_subdomain", "tls")
SWITCHES: Final = ("sending", "receiving", "open_tracking", "click_tracking")


def settings_of(form: Form) -> dict[str, Any]:
    """Return the settings of a form as the body of `PATCH /domains/{id}`."""
    return {
        "capabilities": {name: _switch(form.get(name)) for name in ("sending", "receiving")},
        "open_tracking": bool(form.get("open_tracking")),
        "click_tracking": bool(form.get("click_tracking")),
        "tracking_subdomain": label_or_none(form, "tracking_subdomain"),
        "tls": form.get("tls") or "opportunistic",
    }


def label_or_none(form: Form, name: str) -> str | None:
    """Return the text of a field without spaces around it; None where it is empty."""
    return form.get(name).strip() or None


def typed(form: Form) -> dict[str, str]:
    """Return what was typed and ticked, to fill the form again."""
    return {name: form.get(name) for name in (*TEXTS_OF_FORM, *SWITCHES)}


def _switch(ticked: str) -> str:
    return "enabled" if ticked else "disabled"
