"""The same by API: a page's calls as curl, Python and Node, with the official SDKs where they have the call.

A sample never holds a secret: the key stands as `re_…` or in the environment.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode
from uuid import UUID

from pillarbox.dashboard.frame.sdk_calls import SDK_CALLS, SdkMethod, camel_keys
from pillarbox.kernel.http.openapi import JSON

LONGEST_BODY: Final = 4000
DEEPEST: Final = 100
UNSEEN: Final = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
"""Characters that nobody sees, or that turn the writing round: code that is copied must be as it looks."""

OF_PATHS: Final = "/{}%@:!$&'()*+,;=?[]~"
"""Characters that stand in a path as they are."""

FORM: Final = "application/x-www-form-urlencoded"
FILES: Final = "multipart/form-data"


@dataclass(frozen=True, slots=True)
class ApiExample:
    """A call of the API as the page shows it: path with its values, query and body. `media` is the type of
    the body."""

    method: str
    path: str
    query: Mapping[str, str]
    body: Any
    needs_key: bool = True
    media: str = JSON


class CodeSample(NamedTuple):
    """One call in the three languages."""

    title: str
    curl: str
    python: str
    node: str
    reference: str | None = None
    """The address of the operation's page."""


def shortened(body: Any) -> Any:
    """Return a body with no more of it than samples show; they end within its first characters."""
    return _cut(body, [2 * LONGEST_BODY], 0)


def _cut(value: Any, left: list[int], depth: int) -> Any:
    """Return as much of the value as fits into what is left; each value takes at least one character."""
    if isinstance(value, str):
        shown = value[: max(0, left[0])]
        left[0] -= len(shown) + 1
        return shown
    if depth > DEEPEST:
        return None
    if isinstance(value, Mapping):
        cut: dict[str, Any] = {}
        for name, one in value.items():
            if left[0] <= 0:
                break
            left[0] -= len(name) + 1
            cut[name[:LONGEST_BODY]] = _cut(one, left, depth + 1)
        return cut
    if isinstance(value, (list, tuple)):
        found = []
        for one in value:
            if left[0] <= 0:
                break
            found.append(_cut(one, left, depth + 1))
        left[0] -= 1
        return found
    left[0] -= 1
    return value


def samples_of(calls: Sequence[ApiExample], url: str) -> list[CodeSample]:
    """Return the calls as code; `url` is the base URL of the installation."""
    return [_sample(call, url.rstrip("/")) for call in calls]


def _sample(call: ApiExample, url: str) -> CodeSample:
    call = replace(call, body=shortened(call.body))
    path = quote(call.path, safe=OF_PATHS)
    target = f"{path}?{urlencode(call.query)}" if call.query else path
    pattern, ids = _pattern(call.path)
    sdk = SDK_CALLS.get((call.method, pattern))
    return CodeSample(
        f"{call.method} {target}",
        _curl(call, f"{url}{target}"),
        _python(call, sdk.python, ids, url) if sdk else _plain_python(call, f"{url}{target}"),
        _node(call, sdk.node, ids, url) if sdk else _plain_node(call, f"{url}{target}"),
    )


def _pattern(path: str) -> tuple[str, list[str]]:
    """Return the path with `{}` for each id, and the ids."""
    pieces, ids = [], []
    for piece in path.split("/"):
        if _is_id(piece):
            ids.append(piece)
            pieces.append("{}")
        else:
            pieces.append(piece)
    return "/".join(pieces), ids


def _is_id(piece: str) -> bool:
    if piece.startswith("msg_"):
        return True
    try:
        UUID(piece)
    except ValueError:
        return False
    return True


def _curl(call: ApiExample, url: str) -> str:
    lines = [f"curl {_shell(url)}"]
    if call.needs_key:
        lines.append('-H "Authorization: Bearer $RESEND_API_KEY"')
    if call.method != "GET":
        lines[0] = f"curl -X {call.method} {_shell(url)}"
    if call.body and call.media == JSON:
        lines += ["-H 'Content-Type: application/json'", f"-d {_shell(_json(call.body))}"]
    elif call.body and call.media == FILES:
        lines += [f"-F {_shell(f'{name}=@contacts.csv')}" for name in call.body]
    elif call.body:
        lines += [f"--data-urlencode {_shell(f'{name}={value}')}" for name, value in call.body.items()]
    return " \\\n  ".join(lines)


def _shell(text: str) -> str:
    """Return the text as one word of the shell; what nobody sees is escaped, as Bash and zsh read it."""
    if UNSEEN.search(text):
        quoted = text.replace("\\", "\\\\").replace("'", "\\'")
        return f"$'{UNSEEN.sub(_escaped, quoted)}'"
    return "'" + text.replace("'", "'\\''") + "'"


def _json(body: Any, indent: int | None = None) -> str:
    text = UNSEEN.sub(_escaped, json.dumps(body, ensure_ascii=False, indent=indent))
    return text if len(text) <= LONGEST_BODY else text[:LONGEST_BODY] + "…"


def _escaped(character: re.Match[str]) -> str:
    return f"\\u{ord(character[0]):04x}"


def _fields(call: ApiExample) -> Any:
    """Return what an SDK is given besides ids: query and body together, or a body that is a list."""
    return call.body if isinstance(call.body, list) else {**call.query, **(call.body or {})}


def _among_fields(method: SdkMethod, ids: Sequence[str], fields: Any) -> Any:
    """Return the fields with the ids, by the names that the method has for them."""
    named = dict(zip(method.names, ids, strict=True))
    return {**named, method.body: fields} if method.body is not None else {**named, **fields}


def _python(call: ApiExample, method: SdkMethod, ids: Sequence[str], url: str) -> str:
    fields = _fields(call)
    if method.names:
        arguments = [_python_value(_among_fields(method, ids, fields))]
    elif method.keywords is not None:
        arguments = [f"{name}={piece!r}" for name, piece in zip(method.keywords, ids, strict=True)]
        arguments += [f"params={_python_value(fields)}"] if fields else []
    else:
        arguments = [*map(repr, ids), *([_python_value(fields)] if fields else [])]
    return "\n".join(
        [
            "import resend",
            "",
            f'resend.api_url = "{url}"  # or RESEND_API_URL; the key is in RESEND_API_KEY',
            f"answer = resend.{method.path}({', '.join(arguments)})",
        ]
    )


def _python_value(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_BODY else text[:LONGEST_BODY] + "…"


def _node(call: ApiExample, method: SdkMethod, ids: Sequence[str], url: str) -> str:
    fields = camel_keys(_fields(call))
    if method.names:
        arguments = [_json(_among_fields(method, ids, fields))]
    else:
        arguments = [*map(json.dumps, ids), *([_json(fields)] if fields else [])]
    return "\n".join(
        [
            "import { Resend } from 'resend';",
            "",
            f"const resend = new Resend(process.env.RESEND_API_KEY, {{ baseUrl: '{url}' }});",
            f"const {{ data, error }} = await resend.{method.path}({', '.join(arguments)});",
        ]
    )


def _plain_python(call: ApiExample, url: str) -> str:
    lines = ["import os", "import httpx", "", f"answer = httpx.request({call.method!r}, {url!r},"]
    if call.needs_key:
        lines.append("    headers={'Authorization': f\"Bearer {os.environ['RESEND_API_KEY']}\"},")
    else:
        del lines[0]
    if call.body and call.media == FILES:
        files = ", ".join(f"{name!r}: open('contacts.csv', 'rb')" for name in call.body)
        lines.append(f"    files={{{files}}},")
    elif call.body:
        lines.append(f"    {'json' if call.media == JSON else 'data'}={_python_value(call.body)},")
    return "\n".join([*lines, ")"])


def _plain_node(call: ApiExample, url: str) -> str:
    headers = ["Authorization: `Bearer ${process.env.RESEND_API_KEY}`"] if call.needs_key else []
    lines, body = [], None
    if call.body and call.media == FILES:
        lines = ["const form = new FormData();"]
        lines += [f"form.append('{name}', await fs.openAsBlob('contacts.csv'));" for name in call.body]
        lines, body = ["import fs from 'node:fs';", "", *lines], "form"
    elif call.body and call.media == FORM:
        body = f"new URLSearchParams({_json(call.body)})"
    elif call.body:
        headers.append("'Content-Type': 'application/json'")
        body = f"JSON.stringify({_json(call.body)})"
    lines += [f"const answer = await fetch({json.dumps(url)}, {{", f"  method: '{call.method}',"]
    if headers:
        lines.append(f"  headers: {{ {', '.join(headers)} }},")
    if body is not None:
        lines.append(f"  body: {body},")
    return "\n".join([*lines, "});"])


PLACEHOLDER: Final = "re_…"


def first_mail(
    url: str,
    *,
    token: str = PLACEHOLDER,
    sender: str = "hello@your-domain.example",
    to: str = "ada@quay.example",
) -> str:
    """Return the Python code of a first mail by the official SDK."""
    note = "  # a key of this team" if token == PLACEHOLDER else ""
    return "\n".join(
        [
            "import resend",
            "",
            f'resend.api_url = "{url.rstrip("/")}"',
            f'resend.api_key = "{token}"{note}',
            "resend.Emails.send({",
            f'    "from": "Harbor <{sender}>",',
            f'    "to": {json.dumps(to)},',
            '    "subject": "Hello",',
            '    "text": "It works.",',
            "})",
        ]
    )


def first_mail_by_curl(url: str, *, token: str, sender: str, to: str) -> str:
    """Return the command that sends a first mail."""
    body = {"from": f"Harbor <{sender}>", "to": to, "subject": "Hello", "text": "It works."}
    return " \\\n  ".join(
        [
            f"curl {_shell(url.rstrip('/') + '/emails')}",
            f"-H 'Authorization: Bearer {token}'",
            "-H 'Content-Type: application/json'",
            f"-d {_shell(_json(body))}",
        ]
    )
