"""Settings: one row for flags, environment and files; a wrong value stops the start (OPS-08)."""

from __future__ import annotations

import base64
import ipaddress
import re
from datetime import timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from pillarbox.app import MANIFESTS, SETTINGS
from pillarbox.emails.settings import verified_domain_required
from pillarbox.kernel.settings import table
from pillarbox.kernel.settings.kinds import (
    DeliveryRoute,
    HostPort,
    ProcessRole,
    Relay,
    RouteKind,
    SubmissionListener,
)
from pillarbox.kernel.settings.settings import (
    ConfigError,
    Settings,
    create_key_ring_file,
    key_ring_text,
    read_settings,
    settings_of,
)
from pillarbox.kernel.storage.disk_space import disks_of
from pillarbox.kernel.terminal.program import InstalledProgram
from pillarbox.tracking.machines import Machine

KEY = base64.b64encode(bytes(range(32))).decode()
FILE = Path(__file__)
MACHINES = FILE.with_name("machines.toml")
SOURCE = Path(__file__).parents[2] / "src/pillarbox"
PROGRAMS = "tests-make-this"

GOOD: dict[str, tuple[str, object]] = {
    "data": ("/srv/pillarbox", Path("/srv/pillarbox")),
    "database_url": ("postgresql://u:p@db/x", "postgresql://u:p@db/x"),
    "blob_url": ("s3://bucket/prefix", "s3://bucket/prefix"),
    "http": ("[::1]:0", HostPort("::1", 0)),
    "smtp": ("off", None),
    "submission": (
        "0.0.0.0:587,tls://0.0.0.0:465",
        (
            SubmissionListener(HostPort("0.0.0.0", 587), False),
            SubmissionListener(HostPort("0.0.0.0", 465), True),
        ),
    ),
    "lmtp": ("[::1]:2424", HostPort("::1", 2424)),
    "smtp_login_needs_tls": ("no", False),
    "smtp_sessions": ("500", 500),
    "smtp_client_sessions": ("off", None),
    "smtp_client_rate": ("60", 60),
    "metrics": ("127.0.0.1:9100", HostPort("127.0.0.1", 9100)),
    "public_url": ("https://mail.example.com/", "https://mail.example.com"),
    "hostname": ("MX1.Example.com", "mx1.example.com"),
    "route": (
        "relay:smtp://ann:p%40ss@relay.example:2525",
        DeliveryRoute(
            RouteKind.RELAY, Relay(host="relay.example", port=2525, smtps=False, user="ann", password="p@ss")
        ),
    ),
    "dns": (
        "127.0.0.1:5353,9.9.9.9,::1",
        (HostPort("127.0.0.1", 5353), HostPort("9.9.9.9", 53), HostPort("::1", 53)),
    ),
    "remote_smtp_port": ("2526", 2526),
    "mta_sts": ("off", False),
    "allow_private": ("127.0.0.0/8,::1", (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1"))),
    "roles": ("delivery,api", (ProcessRole.API, ProcessRole.DELIVERY)),
    "processes": ("3", 3),
    "database_shards": ("32", 32),
    "rate_limit": ("0", 0),
    "initial_api_key": ("re_abcdefgh_0123456789", "re_abcdefgh_0123456789"),
    "initial_email": ("ops@example.com", "ops@example.com"),
    "system_sender": ("no-reply@harbor.example", "no-reply@harbor.example"),
    "secret_key": (f"new:{KEY},old:{KEY}", f"new:{KEY},old:{KEY}"),
    "log": ("json", "json"),
    "log_level": ("debug", "debug"),
    "require_verified_domain": ("never", "never"),
    "simulator_domains": ("a.test, B.test", ("a.test", "b.test")),
    "delivery_window": ("1h30m", timedelta(hours=1, minutes=30)),
    "queue_limit": ("0", 0),
    "tls_cert": (str(FILE), FILE),
    "tls_key": (str(FILE), FILE),
    "trusted_proxy": ("10.0.0.0/8", (ipaddress.ip_network("10.0.0.0/8"),)),
    "require_user_agent": ("true", True),
    "mcp": ("off", False),
    "capture_limit": ("512MiB", 512 * 2**20),
    "capture_networks": ("172.16.0.0/12", (ipaddress.ip_network("172.16.0.0/12"),)),
    "email_retention_days": ("90", 90),
    "body_retention_days": ("30", 30),
    "broadcast_bounce_limit": ("2.5", Fraction(5, 2)),
    "broadcast_complaint_limit": ("0", Fraction(0)),
    "broadcast_limits_after": ("1000", 1000),
    "orphan_blob_days": ("0", 0),
    "metrics_retention_days": ("400", 400),
    "metrics_cache_seconds": ("900", 900),
    "log_retention_days": ("7", 7),
    "oauth_cimd_enabled": ("off", False),
    "oauth_cimd_hosts": ("quill.example,Pen.example", ("quill.example", "pen.example")),
    "oauth_cimd_refused_hosts": ("quill.example", ("quill.example",)),
    "oauth_refresh_reuse_grace_seconds": ("10", 10),
    "audit_retention_days": ("90", 90),
    "oidc_issuer": ("https://id.example.com/realms/quay", "https://id.example.com/realms/quay"),
    "oidc_client_id": ("pillarbox", "pillarbox"),
    "oidc_client_secret": ("tide table", "tide table"),
    "oidc_name": ("Quay Login", "Quay Login"),
    "oidc_domains": ("quay.example,Pier.example", ("quay.example", "pier.example")),
    "oidc_team": (
        "0193A2B4-7C11-7000-8000-5D2C3E4F5A6B",
        "0193a2b4-7c11-7000-8000-5d2c3e4f5a6b",
    ),
    "oidc_role": ("viewer", "viewer"),
    "oidc_only": ("yes", True),
    "spf_value": ("v=spf1 include:spf.example -all", "v=spf1 include:spf.example -all"),
    "most_domains": ("20", 20),
    "most_webhooks": ("200", 200),
    "most_inboxes": ("200", 200),
    "most_api_keys": ("20", 20),
    "receiving_ownership_proof": ("always", "always"),
    "inbound_domain": ("In.Harbor.example", "in.harbor.example"),
    "inbound_require_dns": ("no", False),
    "reject_dmarc_fail": ("yes", True),
    "rspamd_url": ("http://127.0.0.1:11333", "http://127.0.0.1:11333"),
    "received_retention_days": ("30", 30),
    "received_storage": ("10GiB", 10 * 2**30),
    "claim_grace": ("off", None),
    "claim_quiet": ("2d", timedelta(days=2)),
    "claim_scheduled": ("no", False),
    "claim_token_prefix": ("berth-proof", "berth-proof"),
    "reject_reserved_recipients": ("yes", True),
    "pg_bin": (PROGRAMS, None),
    "tracking_machines": (str(MACHINES), (Machine("berth_scanner", "scanner", "BerthScan"),)),
    "webhooks_allow_http": ("yes", True),
    "webhooks_allowed_ports": ("443,8443", frozenset({443, 8443})),
    "webhooks_retention_days": ("30", 30),
    "webhooks_retries": ("5s,1m", (timedelta(seconds=5), timedelta(minutes=1))),
}

WRONG: dict[str, tuple[str, ...]] = {
    "data": ("", "a\nb"),
    "database_url": ("mysql://h/x", "secret-text"),
    "database_shards": ("-1", "many", "2000"),
    "blob_url": ("ftp://x",),
    "http": ("8080", "127.0.0.1", "127.0.0.1:70000", "a b:1", ":80", "[::x]:1", "user@host:1"),
    "smtp": ("nowhere",),
    "submission": ("127.0.0.1:25,", "ssl://127.0.0.1:25"),
    "lmtp": ("0.0.0.0:2424", "192.168.0.7:2424", "[::]:2424", "mta.example:2424", "127.0.0.1:25", "on"),
    "smtp_login_needs_tls": ("perhaps",),
    "smtp_sessions": ("0", "off"),
    "smtp_client_sessions": ("0", "many"),
    "smtp_client_rate": ("0", "1/s"),
    "metrics": ("on",),
    "public_url": ("example.com", "ftp://x", "https://x/path", "https://u@x", "https://x?y=1"),
    "hostname": ("a_b", "-a.example", "a..b", "x" * 64, "ex ample"),
    "route": (
        "relay",
        "relay:",
        "relay:http://x",
        "relay:smtp://u@host",
        "relay:smtp://host:99999",
        "relay:smtp://host/x",
        "deliver",
    ),
    "dns": ("dns.example:53", "1.2.3.4:x"),
    "remote_smtp_port": ("0", "65536", "x", "-1", "1.5"),
    "mta_sts": ("", "2", "maybe"),
    "allow_private": ("10.0.0.0/33", "10.0.0.1/8", "all"),
    "roles": ("web", "api,", "api web"),
    "processes": ("0", "257", "two"),
    "rate_limit": ("-1", "1/s", "99999999999"),
    "initial_api_key": ("short", "re_short", "sk_abcdefgh_0123456789"),
    "initial_email": ("nobody", "a@b@c", "a b@c", "a@-x"),
    "system_sender": ("nobody", "a@b@c.example", "a b@c.example", "a@localhost"),
    "secret_key": ("abc", f"{KEY}", f"a:{KEY},a:{KEY}", f"a:{KEY[:20]}", f":{KEY}"),
    "log": ("xml",),
    "log_level": ("DEBUG", "loud"),
    "require_verified_domain": ("sometimes",),
    "simulator_domains": ("a.test,", "a b"),
    "delivery_window": ("96", "0s", "4 days", "-1h", "1h x"),
    "queue_limit": ("-1", "many", "1000000001"),
    "tls_cert": ("/nowhere/cert.pem",),
    "tls_key": ("/nowhere/key.pem",),
    "trusted_proxy": ("localhost",),
    "require_user_agent": ("maybe",),
    "mcp": ("maybe", ""),
    "capture_limit": ("1 GB", "-1", "big"),
    "capture_networks": ("localhost", "172.16.0.1/12"),
    "tracking_machines": ("/nowhere/machines.toml", str(FILE)),
    "email_retention_days": ("-1", "90d", "36501"),
    "body_retention_days": ("0.5",),
    "broadcast_bounce_limit": ("five", "-1", "101", "1e1", "5%", ".5", "\u0665"),
    "broadcast_complaint_limit": ("0.00001", "1/3"),
    "broadcast_limits_after": ("0", "-1", "few"),
    "orphan_blob_days": ("never",),
    "metrics_retention_days": ("-1", "a year"),
    "metrics_cache_seconds": ("901", "-1"),
    "log_retention_days": ("-1", "30d", "36501"),
    "oauth_cimd_enabled": ("maybe",),
    "oauth_cimd_hosts": ("https://quill.example",),
    "oauth_cimd_refused_hosts": ("quill example",),
    "oauth_refresh_reuse_grace_seconds": ("-1", "301", "1s"),
    "audit_retention_days": ("0", "29", "30d", "36501"),
    "oidc_issuer": (
        "id.example.com",
        "http://id.example.com",
        "https://u@id.example.com",
        "https://id.example.com?x=1",
        "https://id.example.com#x",
        "https://id.example.com:99999",
        "https://",
    ),
    "oidc_client_id": (" ", "x" * 201),
    "oidc_client_secret": (" ", "x" * 1001),
    "oidc_name": (" ", "x" * 41),
    "oidc_domains": ("a_b", "quay.example,"),
    "oidc_team": (" ", "Harbor"),
    "oidc_role": ("owner", "everybody"),
    "oidc_only": ("sometimes",),
    "spf_value": ("spf1", 'v=spf1 "x"'),
    "most_domains": ("0", "many"),
    "most_webhooks": ("-1", "501", "off"),
    "most_inboxes": ("-1", "1000001", "off"),
    "most_api_keys": ("off", "100001"),
    "receiving_ownership_proof": ("maybe",),
    "inbound_domain": ("a b", "-in.example"),
    "inbound_require_dns": ("maybe",),
    "reject_dmarc_fail": ("sometimes",),
    "rspamd_url": ("127.0.0.1:11333", "http://host/path"),
    "received_retention_days": ("-1", "30d"),
    "received_storage": ("-1", "ten"),
    "claim_grace": ("7", "0s"),
    "claim_quiet": ("never",),
    "claim_scheduled": ("2",),
    "claim_token_prefix": ("a b", "a=b", "x" * 64),
    "reject_reserved_recipients": ("2",),
    "pg_bin": ("/nowhere",),
    "webhooks_allow_http": ("perhaps",),
    "webhooks_allowed_ports": ("0", "http"),
    "webhooks_retention_days": ("-1", "90d"),
    "webhooks_retries": ("5s,x", "5", "5s,,5m"),
}

BY_NAME = {setting.name: setting for setting in SETTINGS}
NAMES = sorted(BY_NAME)
KERNEL = {setting.name for setting in table.SETTINGS}
PARTNERS = {"tls_cert": {"tls_key": str(FILE)}, "tls_key": {"tls_cert": str(FILE)}}


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    (tmp_path / "postgres").touch()
    return tmp_path


def value_of(name: str, settings: Settings) -> object:
    return settings[BY_NAME[name]] if name not in KERNEL else getattr(settings, name)


def good(name: str, programs: Path) -> tuple[str, object]:
    return (str(programs), programs) if name == "pg_bin" else GOOD[name]


def test_lmtp_is_refused_where_others_could_reach_it() -> None:
    with pytest.raises(ConfigError) as caught:
        read_settings(SETTINGS, {"lmtp": "0.0.0.0:2424"}, {})
    assert str(caught.value) == (
        "--lmtp: '0.0.0.0:2424' is not a loopback address such as 127.0.0.1:2424; whoever can connect there "
        "is believed, so it is for this machine alone."
    )


def test_a_setting_that_one_slice_reads_is_its_own() -> None:
    """A row of the kernel's table is read by the kernel, by the program, or by several slices."""
    readers: dict[str, set[str]] = {name: set() for name in KERNEL}
    for path in SOURCE.rglob("*.py"):
        part = path.relative_to(SOURCE).parts[0]
        for name in re.findall(r"(?:(?<=settings\.)|(?<=self\.))[a-z_]+", path.read_text()):
            readers.get(name, set()).add(part)
    program = {"kernel", "cli", "worker.py"}
    alone = {name: parts for name, parts in readers.items() if not parts & program and len(parts) < 2}
    assert alone == {}, "put the row into the settings.py of the slice (CONTRIBUTING.md, Settings)"


def test_the_tables_of_this_test_are_whole() -> None:
    assert sorted(GOOD) == NAMES
    assert sorted(WRONG) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_setting_by_flag(name: str, programs: Path) -> None:
    text, value = good(name, programs)
    assert value_of(name, read_settings(SETTINGS, {**PARTNERS.get(name, {}), name: text}, {})) == value


@pytest.mark.parametrize("name", NAMES)
def test_a_setting_by_environment(name: str, programs: Path) -> None:
    text, value = good(name, programs)
    environment = {f"PILLARBOX_{name.upper()}": text}
    assert value_of(name, read_settings(SETTINGS, PARTNERS.get(name, {}), environment)) == value


@pytest.mark.parametrize("name", NAMES)
def test_a_setting_by_file(name: str, programs: Path, tmp_path: Path) -> None:
    text, value = good(name, programs)
    file = tmp_path / "value"
    file.write_text(text + "\n")
    environment = {f"PILLARBOX_{name.upper()}_FILE": str(file)}
    assert value_of(name, read_settings(SETTINGS, PARTNERS.get(name, {}), environment)) == value


@pytest.mark.parametrize(("name", "text"), [(name, text) for name in NAMES for text in WRONG[name]])
def test_a_wrong_value_is_one_sentence(name: str, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_settings(SETTINGS, {}, {f"PILLARBOX_{name.upper()}": text})
    sentence = str(caught.value)
    assert sentence.startswith(f"PILLARBOX_{name.upper()}: ")
    assert sentence.endswith(".")
    assert "\n" not in sentence
    if BY_NAME[name].secret and len(text) > 6:
        assert text not in sentence


def test_a_flag_beats_the_environment_and_that_beats_the_file(tmp_path: Path) -> None:
    file = tmp_path / "limit"
    file.write_text("3")
    everything = {"PILLARBOX_RATE_LIMIT": "2", "PILLARBOX_RATE_LIMIT_FILE": str(file)}
    assert read_settings(SETTINGS, {"rate_limit": "1"}, everything).rate_limit == 1
    assert read_settings(SETTINGS, {}, everything).rate_limit == 2
    assert read_settings(SETTINGS, {}, {"PILLARBOX_RATE_LIMIT_FILE": str(file)}).rate_limit == 3
    assert read_settings(SETTINGS, {}, {}).rate_limit == 10


@pytest.mark.parametrize(
    "name", ["PILLARBOX_RATELIMIT", "PILLARBOX_HTTP_FILES", "PILLARBOX__FILE", "PILLARBOX_"]
)
def test_an_unknown_variable_stops_the_start(name: str) -> None:
    with pytest.raises(ConfigError, match=f"^{name} is not a setting of Pillarbox.$"):
        read_settings(SETTINGS, {}, {name: "1"})


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^PILLARBOX_SECRET_KEY_FILE: the file .* cannot be read"):
        read_settings(SETTINGS, {}, {"PILLARBOX_SECRET_KEY_FILE": str(tmp_path / "missing")})


def test_a_certificate_needs_its_key() -> None:
    with pytest.raises(ConfigError, match="need each other"):
        read_settings(SETTINGS, {"tls_cert": str(FILE)}, {})


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"oidc_issuer": "https://id.quay.example"}, "needs --oidc-client-id and --oidc-client-secret."),
        (
            {"oidc_issuer": "http://localhost:8080", "oidc_client_id": "harbor"},
            "--oidc-issuer needs --oidc-client-secret.",
        ),
        ({"oidc_only": "yes"}, "--oidc-only needs --oidc-issuer."),
    ],
)
def test_a_provider_needs_what_it_is_asked_with(given: dict[str, str], sentence: str) -> None:
    program = InstalledProgram(MANIFESTS)
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        program.refuse_wrong(read_settings(SETTINGS, given, {}))
    whole = {"oidc_issuer": "https://id.quay.example", "oidc_client_id": "a", "oidc_client_secret": "b"}
    program.refuse_wrong(read_settings(SETTINGS, whole, {}))


def test_settings_never_show_secrets() -> None:
    settings = read_settings(
        SETTINGS, {"secret_key": f"a:{KEY}", "route": "relay:smtp://u:hush@relay.example"}, {}
    )
    assert KEY not in repr(settings)
    assert "hush" not in repr(settings)


def test_a_worker_reads_the_same_settings_from_the_texts() -> None:
    settings = read_settings(
        SETTINGS, {name: text for name, (text, _) in GOOD.items() if name != "pg_bin"}, {}
    )
    assert settings.replacing() == settings


def test_the_public_url_follows_the_listener() -> None:
    assert read_settings(SETTINGS, {"http": "127.0.0.1:8025"}, {}).public_url == "http://127.0.0.1:8025"
    assert (
        read_settings(SETTINGS, {"http": "0.0.0.0:80", "hostname": "mx.example"}, {}).public_url
        == "http://mx.example"
    )
    secure = {"http": "[::]:443", "hostname": "mx.example", "tls_cert": str(FILE), "tls_key": str(FILE)}
    assert read_settings(SETTINGS, secure, {}).public_url == "https://mx.example"


@pytest.mark.parametrize(
    ("route", "when", "required"),
    [
        ("capture", "auto", False),
        ("direct", "auto", True),
        ("relay:smtp://relay.example", "auto", True),
        ("capture", "always", True),
        ("direct", "never", False),
    ],
)
def test_when_a_domain_must_be_verified(route: str, when: str, required: bool) -> None:
    settings = read_settings(SETTINGS, {"route": route, "require_verified_domain": when}, {})
    assert verified_domain_required(settings) is required


def test_a_key_ring_that_was_made_is_private(tmp_path: Path) -> None:
    settings = read_settings(SETTINGS, {"data": str(tmp_path)}, {})
    assert key_ring_text(settings) is None
    made = create_key_ring_file(tmp_path / "secret.key")
    assert key_ring_text(settings) == made
    assert (tmp_path / "secret.key").stat().st_mode & 0o777 == 0o600


def test_a_damaged_key_ring_file_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "secret.key").write_text("damaged")
    with pytest.raises(ConfigError, match="does not hold a key ring"):
        key_ring_text(read_settings(SETTINGS, {"data": str(tmp_path)}, {}))
    assert (tmp_path / "secret.key").read_text() == "damaged"


@pytest.mark.parametrize("name", ["data", "a b", "a#b", "a?b=1", "50%41", "ü"])
def test_blobs_are_kept_in_the_data_folder_whatever_its_name(name: str, tmp_path: Path) -> None:
    """Otherwise the blobs of folders with a `#` in their names share one."""
    settings = settings_of({"data": str(tmp_path / name)})
    assert disks_of(settings.data, settings.blobs) == [tmp_path / name / "blobs"]
