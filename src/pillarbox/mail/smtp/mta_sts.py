"""MTA-STS: what a domain's TXT record and policy say about the servers that may get its mail (RFC 8461).

Pure reading and matching; looking up, fetching and keeping policies is for others:

    record = mta_sts.record(texts)                  # of _mta-sts.<domain>
    policy = mta_sts.policy(body)                   # of https://mta-sts.<domain>/.well-known/mta-sts.txt
    policy.allows(mx_host)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

LONGEST_POLICY: Final = 64 * 1024
LONGEST_AGE: Final = 31_557_600
"""A year, the most that `max_age` may be (3.2)."""
MOST_HOSTS: Final = 1000
LONGEST_HOST: Final = 255
WELL_KNOWN: Final = "/.well-known/mta-sts.txt"
MEDIA_TYPE: Final = "text/plain"

Mode = Literal["enforce", "testing", "none"]
_MODES: Final[dict[str, Mode]] = {"enforce": "enforce", "testing": "testing", "none": "none"}

_RECORD = re.compile(r"v[ \t]*=[ \t]*STSv1[ \t]*(?:;(.*))?", re.DOTALL)
_FIELD = re.compile(r"[ \t]*([A-Za-z0-9][A-Za-z0-9_.-]{0,31})[ \t]*=[ \t]*([!-:<>-~]*)[ \t]*")
_ID = re.compile(r"[A-Za-z0-9]{1,32}")
_LINE = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.-]{0,31})[ \t]*:(.*)")
_HOST = re.compile(r"(?:\*\.)?[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+")
_AGE = re.compile(r"[0-9]{1,10}")


class PolicyError(ValueError):
    """A policy that may not be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy as it was published: what to do, for which servers, for how many seconds."""

    mode: Mode
    hosts: tuple[str, ...]
    max_age: int

    def allows(self, host: str) -> bool:
        """Return whether mail may be given to this MX host (4.1): `*` stands for one label, at the
        left only."""
        name = host.rstrip(".").lower()
        parent = name.partition(".")[2]
        return any(name == pattern or (pattern == f"*.{parent}" and parent != "") for pattern in self.hosts)


def record(texts: Sequence[str]) -> str | None:
    """Return the `id` of the one MTA-STS record among the TXT records; None when there is none, or
    several (3.1)."""
    found = [match for match in map(_RECORD.fullmatch, texts) if match is not None]
    if len(found) != 1:
        return None
    ids = []
    for item in (found[0][1] or "").split(";"):
        if not item.strip(" \t"):
            continue
        field = _FIELD.fullmatch(item)
        if field is None:
            return None
        if field[1] == "id":
            ids.append(field[2])
    return ids[0] if ids and _ID.fullmatch(ids[0]) else None


def policy(body: bytes) -> Policy:
    """Return the policy of this document (3.2), or raise PolicyError; unknown fields are passed over."""
    if len(body) > LONGEST_POLICY:
        raise PolicyError("the policy is longer than 64 kB")
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise PolicyError("the policy is not UTF-8") from None
    fields: dict[str, list[str]] = {}
    for line in text.replace("\r\n", "\n").split("\n"):
        found = _LINE.fullmatch(line)
        if found is not None:
            fields.setdefault(found[1], []).append(found[2].strip(" \t"))
        elif line.strip(" \t"):
            raise PolicyError("a line of the policy is no field")
    if fields.get("version", [""])[0] != "STSv1":
        raise PolicyError("the version of the policy is not known")
    mode = _MODES.get(fields.get("mode", [""])[0])
    if mode is None:
        raise PolicyError("the mode of the policy is not known")
    return Policy(mode, _hosts(fields.get("mx", []), mode), _max_age(fields.get("max_age", [""])[0]))


def _hosts(values: Sequence[str], mode: Mode) -> tuple[str, ...]:
    hosts = tuple(dict.fromkeys(value.rstrip(".").lower() for value in values[:MOST_HOSTS]))
    if mode != "none" and not hosts:
        raise PolicyError("the policy names no server")
    wrong = next((host for host in hosts if len(host) > LONGEST_HOST or not _HOST.fullmatch(host)), None)
    if wrong is not None:
        raise PolicyError(f"{wrong[:80]!r} is no name of a server")
    return hosts


def _max_age(text: str) -> int:
    if not _AGE.fullmatch(text):
        raise PolicyError("max_age is missing or no number")
    return min(int(text), LONGEST_AGE)
