"""The settings as values: read from flags, environment and `…_FILE`, each checked by its row.

A flag beats the environment, the environment beats the file that `…_FILE` names, and that beats the
default. What is unknown or wrong stops the start with one sentence that never shows a secret.
"""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

from pillarbox.kernel.process import faults
from pillarbox.kernel.settings import kinds
from pillarbox.kernel.settings.kinds import (
    DeliveryRoute,
    HostPort,
    Network,
    ProcessRole,
    SubmissionListener,
    WrongValue,
)
from pillarbox.kernel.settings.setting import PREFIX, Setting
from pillarbox.kernel.settings.table import KEY_RING_FILE, SETTINGS

T = TypeVar("T")

FILE_SUFFIX = "_FILE"
API_KEY_VARIABLE = PREFIX + "API_KEY"
"""No setting of the server: the key that `pillarbox send` uses."""

PASSPHRASE_VARIABLE = PREFIX + "BACKUP_PASSPHRASE"
"""No setting of the server either: what the key ring in a backup is encrypted with."""

LONGEST_SHOWN = 80


class ConfigError(Exception):
    """A setting is unknown or wrong; the message is one sentence for the operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every setting. Those of the kernel are fields; the row of a slice is the key to its value.

    `given` is the text of those that are not defaults (for the workers), `sources` which flag or variable
    gave it. `rows` are the settings that were
    known where these were read: a worker and a slice alone need none but those that they ask for.
    """

    data: Path
    database_url: str | None = field(repr=False)
    database_shards: int
    blob_url: str | None = field(repr=False)
    http: HostPort
    smtp: HostPort | None
    submission: tuple[SubmissionListener, ...]
    lmtp: HostPort | None
    metrics: HostPort | None
    public_url: str
    hostname: str
    route: DeliveryRoute
    dns: tuple[HostPort, ...]
    allow_private: tuple[Network, ...]
    roles: tuple[ProcessRole, ...]
    processes: int
    rate_limit: int
    initial_api_key: str | None = field(repr=False)
    initial_email: str
    secret_key: str | None = field(repr=False)
    log: str
    log_level: str
    tls_cert: Path | None
    tls_key: Path | None
    trusted_proxy: tuple[Network, ...]
    require_user_agent: bool
    pg_bin: Path | None
    given: Mapping[str, str] = field(repr=False)
    rows: tuple[Setting[Any], ...] = field(repr=False)
    sources: Mapping[str, str] = field(default_factory=dict, repr=False)
    _values: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __getitem__(self, setting: Setting[T]) -> T:
        """Return the value of a slice's setting."""
        if setting.name not in self._values:
            text = self.given.get(setting.name, setting.default)
            self._values[setting.name] = None if text is None else checked(setting, text, setting.flag)
        value: T = self._values[setting.name]
        return value

    @property
    def public(self) -> frozenset[str]:
        """The names of the settings that may be shown."""
        return frozenset(setting.name for setting in self.rows if not setting.secret)

    @property
    def secret(self) -> frozenset[str]:
        """The names of those that may not."""
        return frozenset(setting.name for setting in self.rows if setting.secret)

    @property
    def blobs(self) -> str:
        """The blob store's URL."""
        return self.blob_url or f"file:{quote(str(self.data / 'blobs'))}"

    def replacing(self, **texts: str) -> Settings:
        """Return the settings with other texts for some: what the supervisor found out at the start."""
        return settings_of({**self.given, **texts}, self.rows, self.sources)


def read_settings(
    rows: tuple[Setting[Any], ...],
    flags: Mapping[str, str | None],
    environment: Mapping[str, str] = os.environ,
) -> Settings:
    """Return the settings of a command line and an environment, or raise ConfigError. `rows` are all that
    there are."""
    refuse_unknown(rows, environment)
    refuse_wrong_faults(environment)
    texts: dict[str, str] = {}
    sources: dict[str, str] = {}
    for setting in rows:
        text, source = text_of(setting, flags.get(setting.name), environment)
        if text is not None:
            texts[setting.name], sources[setting.name] = text, source
            checked(setting, text, source)
    return settings_of(texts, rows, sources)


def refuse_unknown(rows: Iterable[Setting[Any]], environment: Mapping[str, str]) -> None:
    """Refuse a misspelt variable: it would be a setting that silently does nothing."""
    known = {setting.env for setting in rows} | {faults.VARIABLE, API_KEY_VARIABLE, PASSPHRASE_VARIABLE}
    for name in sorted(environment):
        if name.startswith(PREFIX) and name not in known and name.removesuffix(FILE_SUFFIX) not in known:
            raise ConfigError(f"{name} is not a setting of Pillarbox.")


def refuse_wrong_faults(environment: Mapping[str, str]) -> None:
    """Refuse a misspelt fault: it would be a test that silently tests nothing."""
    if text := environment.get(faults.VARIABLE):
        try:
            faults.parse(text)
        except ValueError as wrong:
            raise ConfigError(f"{faults.VARIABLE}: {wrong}.") from None


def text_of(
    setting: Setting[Any], flag: str | None, environment: Mapping[str, str]
) -> tuple[str | None, str]:
    """Return the text that counts for a setting and where it came from; None when it was not given."""
    if flag is not None:
        return flag, setting.flag
    if setting.env in environment:
        return environment[setting.env], setting.env
    variable = setting.env + FILE_SUFFIX
    if variable in environment:
        return content_of(variable, environment[variable]), variable
    return None, ""


def content_of(variable: str, path: str) -> str:
    """Return the content of the file that a `…_FILE` variable names, without the last line end."""
    try:
        return Path(path).read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"{variable}: the file {shown(path)} cannot be read: {reason}.") from None


def checked(setting: Setting[Any], text: str, source: str) -> Any:
    """Return the value of a text, or raise ConfigError with one sentence."""
    try:
        if not text or re.search(r"[\x00-\x1f\x7f]", text):
            raise WrongValue("is empty or holds control characters")
        return setting.parse(text)
    except WrongValue as wrong:
        what = "the value" if setting.secret else shown(text)
        raise ConfigError(f"{source}: {what} {wrong}.") from None


def shown(text: str) -> str:
    """Return a value as an error may show it: quoted, escaped, not too long."""
    return ascii(text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…")


def settings_of(
    texts: Mapping[str, str],
    rows: tuple[Setting[Any], ...] = SETTINGS,
    sources: Mapping[str, str] = MappingProxyType({}),
) -> Settings:
    """Return the settings of texts by name, with the defaults for the others. Those of the kernel are checked
    here, those of slices where they were read or when they are asked for."""
    values: dict[str, Any] = {}
    for setting in SETTINGS:
        text = texts.get(setting.name, setting.default)
        values[setting.name] = None if text is None else checked(setting, text, setting.flag)
    if (values["tls_cert"] is None) != (values["tls_key"] is None):
        raise ConfigError("--tls-cert and --tls-key need each other.")
    fill_in(values)
    return Settings(given=dict(texts), rows=rows, sources=dict(sources), **values)


def fill_in(values: dict[str, Any]) -> None:
    """Fill in the defaults that are found out."""
    values["hostname"] = values["hostname"] or system_hostname()
    values["public_url"] = values["public_url"] or derived_url(values)
    values["dns"] = values["dns"] or ()
    values["processes"] = values["processes"] or len(os.sched_getaffinity(0))
    values["log"] = values["log"] or ("text" if sys.stderr.isatty() else "json")


def system_hostname() -> str:
    """Return the machine's name where it can stand in SMTP, else localhost."""
    try:
        return kinds.domain(socket.gethostname())
    except WrongValue:
        return "localhost"


def derived_url(values: Mapping[str, Any]) -> str:
    """Return where a browser on this machine reaches the HTTP server; a wildcard address gives the
    host's name."""
    at: HostPort = values["http"]
    scheme = "https" if values["tls_cert"] else "http"
    host = values["hostname"] if at.host in ("0.0.0.0", "::") else at.host  # noqa: S104
    url = f"{scheme}://{HostPort(host, at.port)}"
    default_port = {"http": ":80", "https": ":443"}[urlsplit(url).scheme]
    return url.removesuffix(default_port)


def key_ring_text(settings: Settings) -> str | None:
    """Return the key ring's text: the setting, else the file under data; None where there is no such file."""
    if settings.secret_key is not None:
        return settings.secret_key
    path = settings.data / KEY_RING_FILE
    try:
        text = path.read_text(encoding="ascii").strip()
        return kinds.key_ring(text)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it does not hold a key ring"
        raise ConfigError(f"The key ring file {path} cannot be read: {reason}.") from None


def create_key_ring_file(path: Path) -> str:
    """Create a new ring, on disk before anything is encrypted with it; for a database that needs no
    other (`kernel.security.ring_check`)."""
    from pillarbox.kernel.security.secrets import KeyRing

    text = KeyRing.generate_text()
    draft = path.with_name(path.name + ".new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    draft.rename(path)
    parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)
    return text
