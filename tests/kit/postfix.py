"""Postfix as a peer: an instance in a folder of its own on a free port (Debian package postfix).

with postfix(port, login=False) as peer:        # skips where it cannot run, and says why
    …hand it mail at peer.port; it relays to `port`, with lmtp=True by LMTP; read peer.log

With `certificate` it offers STARTTLS: a PEM file with a key and its certificate.
"""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import shutil
import smtplib
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kit.process import KEY

MASTER = """\
127.0.0.1:{port} inet n - n - - smtpd
cleanup   unix  n - n -   0 cleanup
qmgr      unix  n - n 300 1 qmgr
tlsmgr    unix  - - n 1000? 1 tlsmgr
rewrite   unix  - - n -   - trivial-rewrite
bounce    unix  - - n -   0 bounce
defer     unix  - - n -   0 bounce
trace     unix  - - n -   0 bounce
proxymap  unix  - - n -   - proxymap
smtp      unix  - - n -   - smtp
lmtp      unix  - - n -   - lmtp
relay     unix  - - n -   - smtp
error     unix  - - n -   - error
discard   unix  - - n -   - discard
retry     unix  - - n -   - error
anvil     unix  - - n -   1 anvil
scache    unix  - - n -   1 scache
postlog   unix-dgram n - n - 1 postlogd
"""

MAIN = """\
compatibility_level = 3.6
queue_directory = {folder}/queue
data_directory = {folder}/state
command_directory = /usr/sbin
daemon_directory = {daemons}
mail_owner = postfix
setgid_group = postdrop
myhostname = mta.quay.example
mydestination =
local_recipient_maps =
alias_maps =
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
mynetworks = 127.0.0.0/8
smtpd_recipient_restrictions = permit_mynetworks, reject
{server_tls}
message_size_limit = 60000000
{way}
transport_maps = inline:{{probe.invalid=discard:}}
smtp_tls_security_level = {level}
smtp_sasl_auth_enable = {login}
smtp_sasl_password_maps = static:resend:{key}
smtp_sasl_security_options = noanonymous
maillog_file_prefixes = {folder}
maillog_file = {folder}/maillog
"""


PROBE = "probe@probe.invalid"

SOUND = 20.0
"""Seconds; a sound Postfix needs less than one."""

FOLDERS = (
    ("etc", "root", 0o755),
    ("state", "postfix", 0o755),
    ("queue", "root", 0o755),
    ("queue/pid", "root", 0o755),
    *(
        (f"queue/{name}", "postfix", 0o700)
        for name in (
            "active",
            "bounce",
            "corrupt",
            "defer",
            "deferred",
            "flush",
            "hold",
            "incoming",
            "private",
            "saved",
            "trace",
        )
    ),
    ("queue/maildrop", "postfix", 0o730),
    ("queue/public", "postfix", 0o710),
)
"""Made before the start, or it would want the right to change the mode of what is not its own."""


@dataclass(frozen=True)
class Postfix:
    """A running instance."""

    port: int
    folder: Path

    @property
    def log(self) -> str:
        """What it says, but for the mail that proved it sound."""
        return "\n".join(line for line in self.lines() if PROBE not in line)

    def lines(self) -> list[str]:
        path = self.folder / "maillog"
        return path.read_text().splitlines() if path.exists() else []


@contextlib.contextmanager
def postfix(
    relay: int, *, login: bool, lmtp: bool = False, certificate: bytes | None = None
) -> Iterator[Postfix]:
    """Yield Postfix in a folder of its own, relaying to a port of ours. Skips where it cannot run."""
    program = shutil.which("postfix", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        pytest.skip("Postfix is not installed (Debian package postfix)")
    if os.geteuid() != 0:
        pytest.skip("Postfix can only be started by root")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    with tempfile.TemporaryDirectory(prefix="pillarbox-postfix-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)  # its daemons are not root
        way = (
            f"default_transport = lmtp:inet:127.0.0.1:{relay}" if lmtp else f"relayhost = [127.0.0.1]:{relay}"
        )
        command = [program, "-c", str(folder / "etc")]
        made = Postfix(port, folder)
        try:
            postconf = str(Path(program).with_name("postconf"))
            configure(folder, port, way, postconf, login=login, certificate=certificate)
            started = subprocess.run([*command, "start"], capture_output=True, text=True, timeout=60)
        except PermissionError as refused:  # to give files away: root without its rights
            pytest.skip(f"Postfix cannot be set up here: {refused!r}")
        try:
            if started.returncode or not works(made):
                pytest.skip(f"Postfix does not start here: {(started.stderr + made.log).strip()[-500:]}")
            yield made
        finally:
            subprocess.run([*command, "stop"], capture_output=True, timeout=120)


def configure(
    folder: Path, port: int, way: str, postconf: str, *, login: bool, certificate: bytes | None
) -> None:
    for name, owner, mode in FOLDERS:
        (folder / name).mkdir()
        (folder / name).chmod(mode)
        group = grp.getgrnam("postdrop").gr_gid if mode in {0o730, 0o710} else 0
        os.chown(folder / name, pwd.getpwnam(owner).pw_uid, group)
    daemons = subprocess.run(
        [postconf, "-d", "-h", "daemon_directory"], capture_output=True, text=True
    ).stdout
    settings = {"level": "encrypt" if login else "may", "login": "yes" if login else "no"}
    settings["server_tls"] = "smtpd_tls_security_level = none"
    if certificate is not None:
        chain = folder / "etc" / "chain.pem"
        chain.write_bytes(certificate)
        settings["server_tls"] = f"smtpd_tls_security_level = may\nsmtpd_tls_chain_files = {chain}"
    filled = MAIN.format(folder=folder, daemons=daemons.strip(), way=way, key=KEY, **settings)
    (folder / "etc" / "main.cf").write_text(filled)
    (folder / "etc" / "master.cf").write_text(MASTER.format(port=port))
    if Path("/etc/postfix/dynamicmaps.cf").exists():
        shutil.copy("/etc/postfix/dynamicmaps.cf", folder / "etc")
    for file in (folder / "etc").iterdir():
        file.chmod(0o644)


def works(made: Postfix) -> bool:
    """Return whether it takes a mail before long and is rid of it: the machine may forbid it what
    it needs."""
    deadline = time.monotonic() + SOUND
    while time.monotonic() < deadline:
        with (
            contextlib.suppress(OSError, smtplib.SMTPException),
            smtplib.SMTP("127.0.0.1", made.port, timeout=SOUND) as client,
        ):
            client.sendmail("", [PROBE], "Subject: probe\n\n.\n")
            break
        time.sleep(0.05)
    while time.monotonic() < deadline:
        if any(PROBE in line and "status=sent" in line for line in made.lines()):
            return True
        time.sleep(0.02)
    return False
