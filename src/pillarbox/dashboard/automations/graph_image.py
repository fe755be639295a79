"""Pictures of graphs on pages: small ones are part of the page, and a large one is a file of its own.

The address of the file says what it shows. So it needs nothing but the stored version, and browsers keep it.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from typing import Final

from markupsafe import Markup

from pillarbox.dashboard.automations.graph_svg import DrawnLine, DrawnStep, drawn
from pillarbox.dashboard.frame.assets import content_of
from pillarbox.dashboard.frame.tones import tone_of
from pillarbox.dashboard.frame.visit import with_query
from pillarbox.dashboard.texts import language, t
from pillarbox.kernel.process.offload import in_thread

MOST_INLINE: Final = 40
"""Steps of a graph that is drawn in the page itself."""

STATES: Final = ("pending", "running", "waiting", "completed", "failed", "skipped")
FONT: Final = 'svg { font-family: system-ui, "Segoe UI", Roboto, sans-serif; }'


async def picture_on(
    here: str,
    version: int,
    label: str,
    steps: Sequence[DrawnStep],
    lines: Sequence[DrawnLine],
    *,
    states: Sequence[str] = (),
    seen: str | None = None,
) -> Markup:
    """Return the picture for a page: SVG, or an image where the graph is large.

    `states` are those of the steps of a run; `seen` is the digest of the figures that it shows.
    """
    if len(steps) <= MOST_INLINE:
        return drawn(label, steps, lines)
    address = with_query(
        f"{here}/picture",
        version=str(version),
        states="".join(str(STATES.index(state)) for state in states),
        taken=_packed([line.is_taken for line in lines]) if states else None,
        seen=seen,
        language=language(),
    )
    alt = t("automation.picture_says", label=label)
    return Markup('<img class="graph-image" src="{}" alt="{}">').format(address, alt)


def states_of(text: str, count: int) -> list[str] | None:
    """Return the states that an address names for so many steps; None where it names none."""
    if len(text) != count or not text.isascii() or set(text) - set("012345"):
        return None
    return [STATES[int(character)] for character in text]


def taken_of(text: str, count: int) -> list[bool]:
    """Return which of so many lines an address names."""
    try:
        bits = int(text[:200], 16)
    except ValueError:
        bits = 0
    return [bool(bits >> place & 1) for place in range(count)]


def with_state(step: DrawnStep, state: str) -> DrawnStep:
    """Return the box of a step in a run."""
    tone = f"{'quiet' if state == 'pending' else tone_of(state)} is-{state}"
    return step._replace(figures=t(f"state.{state}"), tone=tone)


async def picture_file(label: str, steps: Sequence[DrawnStep], lines: Sequence[DrawnLine]) -> bytes:
    """Return the picture as a file with its own colours."""
    picture = str(await in_thread(drawn, label, steps, lines))
    opening, _, rest = picture.partition(">")
    named = opening.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    return f"{named}><style>{_sheet()}</style>{rest}".encode()


@cache
def policy() -> str:
    """Return the Content-Security-Policy of a picture: its own style, and nothing else."""
    digest = b64encode(sha256(_sheet().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; sandbox; frame-ancestors 'none'"


@cache
def _sheet() -> str:
    """Return the colours and the lines of the style sheet that are about graphs."""
    sheet = content_of("dashboard.css").decode()
    tokens = sheet[: sheet.index("*, *::before")].partition("*/")[2]
    rules = [line for line in sheet.splitlines() if line.startswith(".graph ")]
    return "\n".join([tokens, FONT, *rules]).replace("\n  ", "\n")


def _packed(values: Sequence[bool]) -> str:
    return f"{sum(1 << place for place, value in enumerate(values) if value):x}"
