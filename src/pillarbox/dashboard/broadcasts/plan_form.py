"""The forms of a broadcast's plan: when and how fast, and the A/B test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pillarbox.dashboard.people.page_visits import Form

HOURS: Final = [f"{hour:02d}:00" for hour in range(25)]
FIELDS_OF_VARIANT: Final = ("subject", "preview_text", "html", "text")
MOST_VARIANTS: Final = 4
MINUTES: Final[Mapping[str, int]] = {"minutes": 1, "hours": 60}


def without_ids(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return a plan as the body that sets it again."""
    return {name: plan[name] for name in ("canary", "per_hour", "hours", "ab_test")}


def content_of_variant(plan: Mapping[str, Any], number: int | None) -> dict[str, Any]:
    """Return what a variant has in the place of the broadcast's content; nothing where there is none."""
    variants = plan["ab_test"]["variants"] if plan["ab_test"] else []
    [variant] = [one for one in variants if one["variant"] == number] or [{}]
    fields = {name: variant[name] for name in ("subject", "preview_text") if variant.get(name) is not None}
    if variant.get("html") or variant.get("text"):
        fields |= {"html": variant["html"], "text": variant["text"]}
    return fields


def pace_of(form: Form) -> dict[str, Any]:
    """Return what the form says of the canary, the speed and the hours."""
    canary = hours = None
    if form.get("has_canary"):
        canary = {"percent": number_of(form, "canary_percent"), "minutes": minutes_of(form, "canary")}
    if form.get("has_hours"):
        hours = {
            "start": number_of(form, "start"),
            "end": number_of(form, "end"),
            "time_zone": form.get("time_zone").strip(),
            "property": form.get("property") or None,
        }
    per_hour = number_of(form, "per_hour") if form.get("has_speed") else None
    return {"canary": canary, "per_hour": per_hour, "hours": hours}


def test_of(form: Form) -> dict[str, Any] | None:
    """Return the A/B test of the form; None where none is wanted."""
    count = number_of(form, "count")
    if not isinstance(count, int) or count < 2:
        return None
    return {
        "variants": [_variant(form, number) for number in range(1, min(count, MOST_VARIANTS) + 1)],
        "percent": number_of(form, "percent"),
        "winner_by": form.get("winner_by"),
        "minutes": minutes_of(form, "test"),
    }


def number_of(form: Form, name: str) -> int | str:
    """Return a whole number, or the text where it is none: the API says what is wrong with it."""
    text = form.get(name).strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else text


def minutes_of(form: Form, name: str) -> int | str:
    """Return a length of time in minutes."""
    amount = number_of(form, f"{name}_time")
    unit = MINUTES.get(form.get(f"{name}_unit"), 1)
    return amount * unit if isinstance(amount, int) else amount


def time_and_unit(minutes: int) -> tuple[int, str]:
    """Return a length of time as the form shows it."""
    return (minutes // 60, "hours") if minutes and minutes % 60 == 0 else (minutes, "minutes")


def _variant(form: Form, number: int) -> dict[str, Any]:
    texts = {name: form.get(f"{name}_{number}").replace("\r\n", "\n") for name in FIELDS_OF_VARIANT}
    return {name: value for name, value in texts.items() if value.strip()}
