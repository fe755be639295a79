"""The public SPF test suite of RFC 7208, where it lies beside the checkout: scenarios with zones and cases.

The file is YAML; this reader knows just what the suite uses of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from pillarbox.kernel.network.dns import ResolverAnswer, Status

SUITE = Path(__file__).parents[3] / "shared" / "data" / "spf" / "rfc7208-tests.yml"

_CASE = re.compile(r"  (\S.*):")
_FIELD = re.compile(r"    (helo|host|mailfrom|result|explanation):\s+(.*)")
_RECORD = re.compile(r"    - ([A-Z]+)(?::\s*(.*))?")
_QUOTED = re.compile(r"'((?:[^']|'')*)'|\"((?:[^\"\\]|\\.)*)\"|([^\s,\[\]'\"][^,\[\]]*)")
FOLLOWED = 10

Values = list[str]


@dataclass
class Case:
    name: str
    helo: str = ""
    host: str = ""
    mailfrom: str = ""
    explanation: str = ""
    results: Values = field(default_factory=list)


@dataclass
class Scenario:
    """Cases against one zone; `records` has for each name pairs of type and value, TIMEOUT among them."""

    title: str
    cases: list[Case] = field(default_factory=list)
    records: dict[str, list[tuple[str, Values]]] = field(default_factory=dict)


def scenarios(text: str) -> list[Scenario]:
    """Return the documents of the suite."""
    return [_scenario(document) for document in text.split("\n---\n")[1:]]


def _scenario(document: str) -> Scenario:
    found = Scenario("")
    section = ""
    name = ""
    for line in document.splitlines():
        if line.startswith("description:"):
            found.title = line.partition(":")[2].strip()
        if line in ("tests:", "zonedata:"):
            section = line
        elif section == "tests:" and (case := _CASE.fullmatch(line)):
            found.cases.append(Case(case[1]))
        elif section == "tests:" and found.cases and (entry := _FIELD.fullmatch(line)):
            values = _values(entry[2])
            if entry[1] == "result":
                found.cases[-1].results = values
            else:
                setattr(found.cases[-1], entry[1], "".join(values))
        elif section == "zonedata:" and (host := _CASE.fullmatch(line)):
            name = host[1].strip("'\"").lower()
            found.records[name] = []
        elif section == "zonedata:" and (record := _RECORD.fullmatch(line)):
            found.records[name].append((record[1], _values(record[2] or "")))
    return found


def _values(text: str) -> Values:
    """Return a scalar, or the scalars of a list in brackets."""
    text = text.strip()
    if text.startswith("["):
        found = [_scalar(m) for m in _QUOTED.finditer(text.strip("[]"))]
        return [value for value, is_quoted in found if is_quoted or value]
    if text.startswith(("'", '"')):
        match = _QUOTED.match(text)
        return [_scalar(match)[0]] if match else [""]
    return [text]


def _scalar(found: re.Match[str]) -> tuple[str, bool]:
    if found[1] is not None:
        return found[1].replace("''", "'"), True
    if found[2] is not None:
        return found[2].encode("latin-1").decode("unicode_escape"), True
    return found[3].strip(), False


class SuiteZone:
    """A look-up that answers from a scenario, with SPF records as TXT where the suite means it so."""

    def __init__(self, scenario: Scenario) -> None:
        self._records = scenario.records

    async def txt(self, name: str) -> ResolverAnswer[str]:
        status, found = self._ask(name, "TXT")
        texts = ["".join(values).encode("latin-1").decode("utf-8", "replace") for values in found]
        return ResolverAnswer(status, tuple(texts))

    async def mx(self, name: str) -> ResolverAnswer[tuple[int, str]]:
        status, found = self._ask(name, "MX")
        return ResolverAnswer(status, tuple((int(values[0]), values[1]) for values in found))

    async def addresses(self, name: str) -> ResolverAnswer[str]:
        return self._scalars(name, "A")

    async def aaaa(self, name: str) -> ResolverAnswer[str]:
        return self._scalars(name, "AAAA")

    async def ptr(self, name: str) -> ResolverAnswer[str]:
        return self._scalars(name, "PTR")

    def _scalars(self, name: str, kind: str) -> ResolverAnswer[str]:
        status, found = self._ask(name, kind)
        return ResolverAnswer(status, tuple(values[0] for values in found))

    def _ask(self, name: str, kind: str) -> tuple[Status, list[Values]]:
        name = name.rstrip(".").lower()
        for _ in range(FOLLOWED):
            records = self._records.get(name)
            if records is None:
                return "no_name", []
            kinds = {found for found, _ in records}
            wanted = ["SPF"] if kind == "TXT" and "TXT" not in kinds else [kind]
            found = [values for kind, values in records if kind in wanted and values != ["NONE"]]
            if found:
                return "found", found
            if "TIMEOUT" in kinds:
                return "failed", []
            alias = [values[0] for kind, values in records if kind == "CNAME"]
            if not alias:
                return "no_data", []
            name = alias[0].rstrip(".").lower()
        return "failed", []
