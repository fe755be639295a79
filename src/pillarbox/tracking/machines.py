"""Programs that open mail and follow links without anybody looking: a table, and what it says of a request.

A program is known by its `User-Agent` or by the network that it comes from; the first row that matches
counts. The operator adds rows with a file (`tracking_machines`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any, Final

Network = IPv4Network | IPv6Network

KINDS: Final = ("image proxy", "scanner", "link preview", "crawler", "program", "prefetch")
MOST_ROWS = 1000
LONGEST_NAME = 64
LONGEST_AGENT = 1000
KEPT = 4096


@dataclass(frozen=True, slots=True)
class Machine:
    """A row: its name stands in the detail of events. `agent` is a part of the `User-Agent`, or with
    `is_whole` all of it; letters of both cases are the same."""

    name: str
    kind: str
    agent: str | None = None
    is_whole: bool = False
    networks: tuple[Network, ...] = field(default=())


def _rows(kind: str, **agents: str) -> tuple[Machine, ...]:
    return tuple(Machine(name, kind, agent) for name, agent in agents.items())


MACHINES: Final[tuple[Machine, ...]] = (
    *_rows("image proxy", gmail_image_proxy="GoogleImageProxy", yahoo_image_proxy="YahooMailProxy"),
    Machine("apple_mail_privacy", "image proxy", "Mozilla/5.0", is_whole=True),
    Machine(
        "gmail_prefetch",
        "image proxy",
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
        "Chrome/42.0.2311.135 Safari/537.36 Edge/12.246 Mozilla/5.0",
        is_whole=True,
    ),
    *_rows(
        "scanner",
        barracuda="Barracuda",
        bitdefender="Bitdefender",
        cloudmark="Cloudmark",
        fortinet="Forti",
        kaspersky="Kaspersky",
        mimecast="Mimecast",
        proofpoint="Proofpoint",
        sophos="Sophos",
        symantec="Symantec",
        trend_micro="TrendMicro",
        zscaler="Zscaler",
    ),
    *_rows(
        "link preview",
        bing_preview="BingPreview",
        discord="Discordbot",
        facebook="facebookexternalhit",
        linkedin="LinkedInBot",
        skype_and_teams="SkypeUriPreview",
        slack="Slackbot",
        telegram="TelegramBot",
        twitter="Twitterbot",
        whatsapp="WhatsApp/",
    ),
    *_rows("crawler", bot="bot/", bot_with_version="bot;", crawler="crawler", spider="spider"),
    *_rows(
        "program",
        aiohttp="aiohttp",
        apache_http_client="Apache-HttpClient",
        axios="axios/",
        curl="curl/",
        go="Go-http-client",
        headless_chrome="HeadlessChrome",
        httpx="python-httpx",
        java="Java/",
        libwww_perl="libwww-perl",
        node_fetch="node-fetch",
        okhttp="okhttp",
        phantomjs="PhantomJS",
        python_requests="python-requests",
        python_urllib="Python-urllib",
        wget="Wget/",
    ),
    Machine("no_user_agent", "program", "", is_whole=True),
)
"""The machines that are known without the operator's settings."""

PREFETCH: Final = "prefetch"
"""The name of a request that says of itself that nobody has followed the link yet."""


class WrongRow(ValueError):  # noqa: N818 (a file is wrong, the program is not)
    """The message says what is wrong, and where."""


class Machines:
    """The table with the operator's rows before those that are known anyway."""

    def __init__(self, own: Sequence[Machine] = ()) -> None:
        self.rows = (*own, *MACHINES)
        self._by_agent = lru_cache(maxsize=KEPT)(self._of_agent)
        self._networks = [(network, row) for row in self.rows for network in row.networks]

    def name_of(self, agent: str, client: str, purpose: str | None) -> str | None:
        """Return the name of the program that has asked; None where it may be a person. `purpose` is what the
        request says of itself."""
        if purpose is not None and "prefetch" in purpose.lower():
            return PREFETCH
        row = self._by_agent(agent[:LONGEST_AGENT]) or self._of_network(client)
        return None if row is None else row.name

    def _of_agent(self, agent: str) -> Machine | None:
        agent = agent.strip().lower()
        for row in self.rows:
            if row.agent is None:
                continue
            wanted = row.agent.lower()
            if agent == wanted.strip() if row.is_whole else wanted in agent:
                return row
        return None

    def _of_network(self, client: str) -> Machine | None:
        if not self._networks:
            return None
        try:
            address = ip_address(client)
        except ValueError:
            return None
        return next((row for network, row in self._networks if address in network), None)


def read_rows(text: str) -> tuple[Machine, ...]:
    """Return the rows of a file: TOML, with a table `[[machine]]` for each. Raise WrongRow."""
    try:
        tables = tomllib.loads(text)
    except ValueError as wrong:
        # Besides what is no TOML: a number with more digits than Python reads.
        raise WrongRow(f"is not TOML: {wrong}") from None
    except RecursionError:
        raise WrongRow("is nested too deep") from None
    rows = tables.pop("machine", [])
    if tables or not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise WrongRow("holds something other than tables [[machine]]")
    if len(rows) > MOST_ROWS:
        raise WrongRow(f"holds more than {MOST_ROWS} machines")
    return tuple(_read(row, number) for number, row in enumerate(rows, 1))


def _read(row: Mapping[str, Any], number: int) -> Machine:
    where = f"machine {number}"
    texts = ("name", "kind", "user_agent", "user_agent_is")
    if unknown := sorted(row.keys() - {*texts, "networks"}):
        raise WrongRow(f"has the unknown key {unknown[0]!r} in {where}")
    if not all(isinstance(row.get(key, ""), str) for key in texts):
        raise WrongRow(f"has something other than a text in {where}")
    name, kind, part, whole = (row.get(key) for key in texts)
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise WrongRow(f"has no name of 1 to {LONGEST_NAME} visible characters in {where}")
    if (kind or "scanner") not in KINDS:
        raise WrongRow(f"has a kind in {where} that is none of: {', '.join(KINDS)}")
    if part is not None and (whole is not None or not part.strip()):
        raise WrongRow(f"has an empty user_agent, or user_agent_is beside it, in {where}")
    networks = _networks(row.get("networks", []), where)
    agent = part if whole is None else whole
    if agent is None and not networks:
        raise WrongRow(f"has neither a user_agent nor networks in {where}")
    return Machine(
        name=name, kind=kind or "scanner", agent=agent, is_whole=whole is not None, networks=networks
    )


def _networks(texts: object, where: str) -> tuple[Network, ...]:
    if not isinstance(texts, list):
        raise WrongRow(f"has networks that are no list in {where}")
    try:
        return tuple(ip_network(str(text)) for text in texts)
    except ValueError:
        raise WrongRow(f"has something other than a network such as 192.0.2.0/24 in {where}") from None


def described(rows: Iterable[Machine]) -> list[tuple[str, str, str]]:
    """Return the name, the kind, and how each is known, in words."""
    found = []
    for row in rows:
        signs = []
        if row.agent is not None:
            signs.append(f"User-Agent {'is' if row.is_whole else 'has'} {row.agent!r}")
        signs += [f"comes from {network}" for network in row.networks]
        found.append((row.name, row.kind, " or ".join(signs)))
    return found
