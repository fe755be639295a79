"""Postfix as a peer: an instance in a folder of its own on a free port (Debian package postfix).

with postfix(port, login=False) as peer:        # skips where it cannot run, and says why
    …hand it mail at peer.port; it relays to `port`, with lmtp=True by LMTP; read peer.log
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kit.peers import eventually
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
smtpd_tls_security_level = none
{way}
smtp_tls_security_level = {level}
smtp_sasl_auth_enable = {login}
smtp_sasl_password_maps = static:resend:{key}
smtp_sasl_security_options = noanonymous
maillog_file_prefixes = {folder}
maillog_file = {folder}/maillog
"""


@dataclass(frozen=True)
class Postfix:
    """A running instance."""

    port: int
    folder: Path

    @property
    def log(self) -> str:
        path = self.folder / "maillog"
        return path.read_text() if path.exists() else ""


@contextlib.contextmanager
def postfix(relay: int, *, login: bool, lmtp: bool = False) -> Iterator[Postfix]:
    """Postfix in a folder of its own, relaying to a port of ours. Skips where it cannot run."""
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
        configure(folder, port, way, str(Path(program).with_name("postconf")), login=login)
        command = [program, "-c", str(folder / "etc")]
        made = Postfix(port, folder)
        started = subprocess.run([*command, "start"], capture_output=True, text=True, timeout=60)
        if started.returncode:
            pytest.fail(f"Postfix does not start: {(started.stderr + made.log).strip()[-300:]}")
        try:
            eventually(lambda: listens(port), "Postfix listens")
            yield made
        finally:
            subprocess.run([*command, "stop"], capture_output=True, timeout=120)


def configure(folder: Path, port: int, way: str, postconf: str, *, login: bool) -> None:
    for name, owner in (("queue", "root"), ("state", "postfix"), ("etc", "root")):
        (folder / name).mkdir(mode=0o755)
        os.chown(folder / name, pwd.getpwnam(owner).pw_uid, 0)
    daemons = subprocess.run(
        [postconf, "-d", "-h", "daemon_directory"], capture_output=True, text=True
    ).stdout
    settings = {"level": "encrypt" if login else "may", "login": "yes" if login else "no"}
    filled = MAIN.format(folder=folder, daemons=daemons.strip(), way=way, key=KEY, **settings)
    (folder / "etc" / "main.cf").write_text(filled)
    (folder / "etc" / "master.cf").write_text(MASTER.format(port=port))
    if Path("/etc/postfix/dynamicmaps.cf").exists():
        shutil.copy("/etc/postfix/dynamicmaps.cf", folder / "etc")


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
