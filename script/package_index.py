"""Tells uv of the package index, proxy and certificates that this machine's pip is configured with.

uv reads none of pip's configuration. pip is asked for it when it is needed, so it may come from files or from
variables, and no registry is named here. What uv has no word for is left out: if uv cannot install the
packages then, plain pip does.
"""

from __future__ import annotations

import ast
import os
import ssl
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

SECTIONS = ("global", "install", ":env:")
"""Of pip's configuration; a later one replaces what an earlier one says."""

SINGLE = {
    "index-url": ("UV_DEFAULT_INDEX",),
    "timeout": ("UV_HTTP_TIMEOUT",),
    "retries": ("UV_HTTP_RETRIES",),
    "client-cert": ("SSL_CLIENT_CERT",),
    "proxy": ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"),
}
"""What pip calls it, and the variables that mean the same to uv."""

CERTIFICATES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""Variables in which pip looks for a bundle of certificates, after its configuration."""

PROXIES = {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"}


def pip_settings(lines: Iterable[str]) -> dict[str, str]:
    """What `pip config list` says, by name; a line looks like `global.index-url='…'`."""
    found: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for line in lines:
        section, _, rest = line.strip().partition(".")
        name, equals, value = rest.partition("=")
        if section in found and equals:
            found[section][name] = text_of(value)
    return {name: text for section in SECTIONS for name, text in found[section].items() if text}


def text_of(value: str) -> str:
    """The text of a quoted value."""
    try:
        return str(ast.literal_eval(value))
    except (SyntaxError, ValueError):
        return value


def uv_environment(
    settings: Mapping[str, str], environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The environment in which uv uses what pip would use. Settings of uv's own do not count: pip has to
    reach the packages as well."""
    told = {name: text for name, text in environment.items() if not name.startswith("UV_")}
    for name, variables in SINGLE.items():
        if name in settings:
            told.update(dict.fromkeys(variables, settings[name]))
    if "proxy" in settings:
        told = {
            name: text for name, text in told.items() if name == name.upper() or name.upper() not in PROXIES
        }
    told["UV_INDEX"] = " ".join(usable(settings.get("extra-index-url", "")))
    told["UV_FIND_LINKS"] = ",".join(usable(settings.get("find-links", "")))
    told["UV_INSECURE_HOST"] = settings.get("trusted-host", "")
    if settings.get("keyring-provider") == "subprocess":
        told["UV_KEYRING_PROVIDER"] = "subprocess"
    bundles = [settings.get("cert"), *map(environment.get, CERTIFICATES)]
    if bundle := next(filter(None, bundles), None):
        told["SSL_CERT_DIR" if Path(bundle).is_dir() else "SSL_CERT_FILE"] = bundle
    elif has_system_certificates():
        told["UV_SYSTEM_CERTS"] = "1"
    return {name: text for name, text in told.items() if text or not name.startswith("UV_")}


def uv_options(settings: Mapping[str, str]) -> list[str]:
    """What has no variable. Every index counts alike, as for pip: the hashes say what may be installed."""
    options = ["--no-config", "--index-strategy", "unsafe-best-match"]
    if settings.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        options.append("--no-index")
    for name in ("only-binary", "no-binary"):
        for package in settings.get(name, "").replace(",", " ").split():
            options += [f"--{name}", package]
    return options


def usable(addresses: str) -> list[str]:
    """The addresses of a list, without folders that do not exist: pip only warns of them, uv stops."""
    return [address for address in addresses.split() if is_usable(address)]


def is_usable(address: str) -> bool:
    parts = urlsplit(address)
    if parts.scheme == "file":
        return Path(unquote(parts.path)).exists()
    return bool(parts.scheme) or Path(address).expanduser().exists()


def has_system_certificates() -> bool:
    """Whether this machine has certificates where OpenSSL looks; those of uv serve where it has none."""
    paths = ssl.get_default_verify_paths()
    folder = Path(paths.capath) if paths.capath else None
    return paths.cafile is not None or (folder is not None and any(folder.iterdir()))
