"""Folds what a mail quotes, in cleaned HTML: each outermost quotation opens by itself, without a script."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import Final

STYLE: Final = (
    "details.quote>summary{cursor:pointer;display:inline-block;padding:0 .6em;border-radius:9px;"
    "background:#eceff3;color:#1b1f24;font-size:13px}"
)

_TAG: Final = re.compile(r'<(/?)([a-z0-9]++)[^>"]*+(?:"[^"]*+"[^>"]*+)*>')
"""Any tag of cleaned HTML, where values of attributes stand in double quotes."""


def with_folded_quotes(body: str, label: str) -> str:
    """Return the body with each outermost `blockquote` folded behind a button with this label."""
    if "<blockquote" not in body:
        return body
    return "".join(_pieces(body, f'<details class="quote"><summary>{escape(label)}</summary>'))


def _pieces(body: str, opening: str) -> Iterator[str]:
    depth = begin = 0
    for tag in _TAG.finditer(body):
        if tag[2] != "blockquote":
            continue
        if not tag[1]:
            if depth == 0:
                yield body[begin : tag.start()]
                yield opening
                begin = tag.start()
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                yield body[begin : tag.end()]
                yield "</details>"
                begin = tag.end()
    yield body[begin:]
    if depth:
        yield "</details>"
