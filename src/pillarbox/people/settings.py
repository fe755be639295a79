"""The settings of people."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pillarbox.kernel.settings import kinds
from pillarbox.kernel.settings.setting import Setting

if TYPE_CHECKING:
    from pillarbox.kernel.settings.settings import Settings


def sender(text: str) -> str:
    """Return an address under which mail may be sent: at a name of at least two labels."""
    address = kinds.email_address(text)
    if "." not in address.rpartition("@")[2]:
        raise kinds.WrongValue("is not an email address")
    return address


def issuer(text: str) -> str:
    """Return the URL of a provider: HTTPS, or HTTP on this machine; without query and fragment
    (OpenID Connect Discovery, section 4)."""
    parts = kinds.url_parts(text)
    try:
        _ = parts.port
    except ValueError:
        raise kinds.WrongValue("has a port that is none") from None
    is_secure = parts.scheme == "https" or (parts.scheme == "http" and is_this_machine(parts.hostname or ""))
    if not is_secure or not parts.hostname or not text.isascii() or len(text) > 500:
        raise kinds.WrongValue("is not a URL such as https://id.example.com")
    if "?" in text or "#" in text or parts.username is not None:
        raise kinds.WrongValue("must not have a query, a fragment or a user")
    return text


def team_id(text: str) -> str:
    """Return the id of a team. A name is refused: a team chooses its name, and may take that of another."""
    try:
        return str(UUID(text))
    except ValueError:
        raise kinds.WrongValue("is not the id of a team, as `pillarbox teams list` shows it") from None


def is_this_machine(host: str) -> bool:
    """Return whether a host of a URL is this machine: what is sent there needs no HTTPS."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def printable(limit: int) -> Callable[[str], str]:
    """Return the kind of texts of printable characters, up to so many."""

    def parse(text: str) -> str:
        if not text.strip() or not text.isprintable() or len(text) > limit:
            raise kinds.WrongValue(f"is not a text of up to {limit} printable characters")
        return text

    return parse


SYSTEM_SENDER = Setting(
    name="system_sender",
    parse=kinds.optional(sender),
    shape="ADDRESS",
    default="off",
    meaning="Who invitations and links for lost passwords come from: an address of a domain that the "
    "oldest team has verified; `off`: `no-reply` at the host's name.",
)

AUDIT_RETENTION_DAYS = Setting(
    name="audit_retention_days",
    parse=kinds.whole_number(30, 36500),
    shape="DAYS",
    default="365",
    meaning="For how many days the log of acts is kept: who logged in, made a key, deleted a domain.",
)

OIDC_ISSUER: Setting[str | None] = Setting(
    name="oidc_issuer",
    parse=kinds.optional(issuer),
    shape="URL",
    default="off",
    meaning="The OpenID Connect provider by which people log in as well, written exactly as its discovery "
    "document calls itself, such as `https://id.example.com`; `off`: people log in without one.",
)

OIDC_CLIENT_ID: Setting[str | None] = Setting(
    name="oidc_client_id",
    parse=kinds.optional(printable(200)),
    shape="ID",
    default="off",
    meaning="What the provider calls this installation; needed with `--oidc-issuer`.",
)

OIDC_CLIENT_SECRET: Setting[str | None] = Setting(
    name="oidc_client_secret",
    parse=printable(1000),
    shape="SECRET",
    default=None,
    meaning="By what this installation proves to the provider who it is; needed with `--oidc-issuer`.",
    otherwise="no secret",
    secret=True,
)

OIDC_NAME: Setting[str | None] = Setting(
    name="oidc_name",
    parse=printable(40),
    shape="NAME",
    default=None,
    meaning="What people know the provider by: the login page says `Log in with NAME`.",
    otherwise="the host of `--oidc-issuer`",
)

OIDC_DOMAINS = Setting(
    name="oidc_domains",
    parse=kinds.domains,
    shape="DOMAIN[,…]",
    default="none",
    meaning="Whoever has a verified address at one of these domains comes in without an invitation, once, as "
    "a member of `--oidc-team`; `none`: people are invited.",
)

OIDC_TEAM: Setting[str | None] = Setting(
    name="oidc_team",
    parse=team_id,
    shape="ID",
    default=None,
    meaning="The team of people who come in by `--oidc-domains`, by the id that `pillarbox teams list` "
    "shows. No name is taken, because teams rename themselves.",
    otherwise="the only team besides the demo's; with several, nobody comes in by their domain",
)

OIDC_ROLE = Setting(
    name="oidc_role",
    parse=kinds.one_of("viewer", "member", "admin"),
    shape="ROLE",
    default="member",
    meaning="What people who come in by `--oidc-domains` may do in the team: `viewer`, `member` or `admin`.",
)

OIDC_ONLY = Setting(
    name="oidc_only",
    parse=kinds.switch,
    shape="BOOL",
    default="false",
    meaning="Whether the provider is the only way in: passwords and passkeys let in only accounts that "
    "`pillarbox people password-login ADDRESS` has named.",
)

SETTINGS: tuple[Setting[Any], ...] = (
    SYSTEM_SENDER,
    AUDIT_RETENTION_DAYS,
    OIDC_ISSUER,
    OIDC_CLIENT_ID,
    OIDC_CLIENT_SECRET,
    OIDC_NAME,
    OIDC_DOMAINS,
    OIDC_TEAM,
    OIDC_ROLE,
    OIDC_ONLY,
)


def refuse_wrong(settings: Settings) -> None:
    """Raise ConfigError for a provider without what is needed to ask it, and for its settings without it."""
    from pillarbox.kernel.settings.settings import ConfigError

    needed = (OIDC_CLIENT_ID, OIDC_CLIENT_SECRET)
    missing = [setting.flag for setting in needed if settings[setting] is None]
    if settings[OIDC_ISSUER] is not None:
        if missing:
            raise ConfigError(f"{OIDC_ISSUER.flag} needs {' and '.join(missing)}.")
    elif settings[OIDC_ONLY]:
        raise ConfigError(f"{OIDC_ONLY.flag} needs {OIDC_ISSUER.flag}.")
