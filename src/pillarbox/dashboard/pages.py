"""From a template to an answer: escaped, with the headers that every page has (UI-01, UI-04)."""

from __future__ import annotations

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib import resources
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from pillarbox.dashboard.frame import times
from pillarbox.dashboard.frame.tones import tone_of
from pillarbox.dashboard.texts import NAMES, has_text, language, t, translated
from pillarbox.dashboard.texts.number_format import number
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.process.offload import in_thread

if TYPE_CHECKING:
    from jinja2 import Environment

STYLES = resources.files("pillarbox.dashboard").joinpath("templates/style.css").read_text(encoding="utf-8")
STYLES_HASH = b64encode(sha256(STYLES.encode()).digest()).decode("ascii")

POLICY = (
    f"default-src 'none'; style-src 'sha256-{STYLES_HASH}'; img-src data:; frame-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "referrer-policy": "same-origin",
    "x-robots-tag": "noindex",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
LONGEST_TEXT = 1024 * 1024
LONGEST_CELL = 200
SCREEN_TEXT = 100_000
"""Octets of a screen that one long text takes at most."""

_CODE = re.compile("`([^`]+)`")
_SYNTAX = re.compile(r"[\^$\\.*+?()\[\]{}|/]")
_ISOLATED = Markup("<bdi>{}</bdi>")
UNITS = ("B", "kB", "MB", "GB", "TB")


def size(octets: int) -> str:
    """Return a size as people read it."""
    amount, unit = float(octets), 0
    while amount >= 1000 and unit < len(UNITS) - 1:
        amount, unit = amount / 1000, unit + 1
    return t("parts.bytes", count=octets) if unit == 0 else f"{number(amount, 1)} {UNITS[unit]}"


def cut(text: str) -> str:
    """Return what a row of a list shows of a text that somebody else wrote."""
    return text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}…"


def exact_pattern(text: str) -> str:
    """Return the value of the attribute `pattern` that only this text fits."""
    return _SYNTAX.sub(lambda found: "\\" + found[0], text)


def sentence(key: str, **values: str) -> Markup:
    """Return the text of a key with what strangers wrote in place of the words in braces."""
    return escape(t(key)).format(**{name: _ISOLATED.format(value) for name, value in values.items()})


def with_code(text: str) -> Markup:
    """Return a text as HTML, with what stands between backticks as code; `bdi` keeps it together."""
    shown, count = _CODE.subn(r"<code>\1</code>", str(escape(text)))
    return Markup(f"<bdi>{shown}</bdi>" if count else shown)  # noqa: S704 (escaped)


@cache
def _templates() -> Environment:
    # Loaded with the first page: many processes never show one.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("pillarbox.dashboard", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["size"] = size
    made.globals["styles"] = Markup(STYLES)  # noqa: S704 (our own file)
    made.filters["utc"] = times.utc
    made.filters["utc_text"] = times.utc_text
    made.filters["local_text"] = times.local_text
    made.filters["local_day"] = times.local_day
    made.filters["number"] = number
    made.filters["translated"] = translated
    made.filters["exact_pattern"] = exact_pattern
    made.filters["cut"] = cut
    made.filters["with_code"] = with_code
    made.globals.update(
        t=t, has_text=has_text, language=language, languages=NAMES, sentence=sentence, tone_of=tone_of
    )
    return made


_compiled: set[str] = set()


async def prepare(template: str) -> None:
    """Compile a template with all that it extends and imports, in a thread, where nobody has used it yet."""
    if template not in _compiled:
        await in_thread(_compile, template)
        _compiled.add(template)


def _compile(template: str) -> None:
    from jinja2 import meta

    environment = _templates()
    source, _, _ = environment.loader.get_source(environment, template)  # type: ignore[union-attr]
    for name in meta.find_referenced_templates(environment.parse(source)):
        if name is not None:
            _compile(name)
    environment.get_template(template)


def beginning(text: str | None) -> tuple[str | None, bool]:
    """Return as much of a text as a page shows, and whether that is less than all of it."""
    if text is None or len(text) <= LONGEST_TEXT:
        return text, False
    return text[:LONGEST_TEXT], True


def screen_text(text: str | None, limit: int = SCREEN_TEXT) -> tuple[str | None, bool]:
    """Return as much of a text as takes `limit` octets of HTML, and whether that is less than all of it."""
    if text is None:
        return None, False
    shown = text[:limit]
    while (octets := len(escape(shown).encode("utf-8", "replace"))) > limit:
        shown = shown[: max(0, len(shown) * limit // octets - 1)]
    return shown, len(shown) < len(text)


def render(template: str, **values: Any) -> str:
    """Return the text of a page."""
    return _templates().get_template(template).render(**values)


def page(
    template: str, *, status: int = 200, headers: dict[str, str] | None = None, **values: Any
) -> Reply[Html]:
    """Show a page as an answer."""
    return Reply.html(render(template, **values), status, {**HEADERS, **(headers or {})})


def message_page(title: str, text: str, *, status: int, link: tuple[str, str] | None = None) -> Reply[Html]:
    """Show a page that says one thing; `link` is an address and its text."""
    return page("message.html", status=status, title=title, text=text, link=link)
