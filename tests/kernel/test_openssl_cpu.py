"""What OpenSSL is told about the processor, and that a signature is the same either way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pillarbox.kernel.security.openssl_cpu import VARIABLE, WITHOUT_ADX, variables
from pillarbox.mail.authentication import dkim

ZEN_3 = "fpu adx bmi1 avx2 bmi2 sha_ni vaes vpclmulqdq"
SIGN = """
import sys
from pillarbox.mail.authentication import dkim

key = dkim.load_key(bytes.fromhex(sys.argv[1]))
print(dkim.sign(b"From: a@b.c\\r\\n\\r\\nhello\\r\\n", domain="b.c", selector="s", key=key, instant=1).hex())
"""


@pytest.mark.parametrize(
    ("vendor", "flags", "helps"),
    [
        ("AuthenticAMD", ZEN_3, True),
        ("AuthenticAMD", f"{ZEN_3} avx512f avx512ifma", False),
        ("AuthenticAMD", "fpu adx bmi1 avx2 bmi2", False),
        ("AuthenticAMD", "fpu avx2 bmi2 vaes", False),
        ("GenuineIntel", ZEN_3, False),
    ],
)
def test_only_measured_processors_set_variables(tmp_path: Path, vendor: str, flags: str, helps: bool) -> None:
    """The second processor is not looked at."""
    said = f"processor\t: 0\nvendor_id\t: {vendor}\nflags\t\t: {flags}\nbugs\t\t:\n"
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"{said}\nprocessor\t: 1\nvendor_id\t: Other\nflags\t\t: none\n")
    assert variables({}, cpuinfo) == ({VARIABLE: WITHOUT_ADX} if helps else {})
    assert variables({VARIABLE: ""}, cpuinfo) == {}, "who has set the variable knows better"


def test_other_systems_set_no_variables(tmp_path: Path) -> None:
    assert variables({}, tmp_path / "missing") == {}


def test_signatures_are_the_same_either_way() -> None:
    """RSA signatures of PKCS #1 v1.5 depend on the key and the message alone."""
    key = dkim.generate_rsa_key().private.hex()
    made = {
        subprocess.run(
            [sys.executable, "-P", "-c", SIGN, key],
            env={**os.environ, VARIABLE: advice},
            capture_output=True,
            check=True,
        ).stdout
        for advice in ("", WITHOUT_ADX)
    }
    assert len(made) == 1
    assert made != {b""}
