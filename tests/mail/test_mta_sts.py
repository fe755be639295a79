"""MTA-STS records and policies (TLS-03, RFC 8461)."""

from __future__ import annotations

import contextlib
import time

import pytest

from pillarbox.mail.smtp import mta_sts
from pillarbox.mail.smtp.mta_sts import LONGEST_AGE, Policy, PolicyError

POLICY = "version: STSv1\r\nmode: enforce\r\nmx: mail.quay.test\r\nmx: *.Quay.test\r\nmax_age: 604800\r\n"


@pytest.mark.parametrize(
    ("texts", "policy_id"),
    [
        (["v=STSv1; id=20160831085700Z;"], "20160831085700Z"),
        (["v=STSv1;id=a1"], "a1"),
        (["v=spf1 -all", "v=STSv1; id=a1; ext=x.y:z"], "a1"),
        (["v=STSv1; id=a1; id=b2"], "a1"),
        ([], None),
        (["v=STSv1"], None),
        (["v=STSv1; id="], None),
        (["v=STSv1; id=not-alphanumeric"], None),
        (["v=STSv1; id=" + "a" * 33], None),
        (["v=STSv2; id=a1"], None),
        (["v=STSv10; id=a1"], None),
        (["id=a1; v=STSv1"], None),
        (["v=STSv1; id=a1", "v=STSv1; id=a1"], None),
        (["v=STSv1; id=a1; broken"], None),
    ],
)
def test_the_record(texts: list[str], policy_id: str | None) -> None:
    """RFC 8461 3.1: several records are none."""
    assert mta_sts.record(texts) == policy_id


def test_a_policy() -> None:
    """RFC 8461 3.2."""
    found = mta_sts.policy(POLICY.encode())
    assert found == Policy("enforce", ("mail.quay.test", "*.quay.test"), 604800)
    assert mta_sts.policy(POLICY.replace("\r\n", "\n").encode()) == found
    assert mta_sts.policy((POLICY + "extension: whatever\r\n").encode()) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (POLICY.replace("enforce", "testing"), "testing"),
        ("version: STSv1\nmode: none\nmax_age: 1", "none"),
        (POLICY.replace("604800", "99999999"), LONGEST_AGE),
    ],
)
def test_modes_and_ages(text: str, found: str | int) -> None:
    policy = mta_sts.policy(text.encode())
    assert found in (policy.mode, policy.max_age)


@pytest.mark.parametrize(
    "text",
    [
        "",
        POLICY.replace("STSv1", "STSv2"),
        POLICY.replace("version: STSv1\r\n", ""),
        POLICY.replace("enforce", "maybe"),
        POLICY.replace("mode: enforce\r\n", ""),
        POLICY.replace("max_age: 604800\r\n", ""),
        POLICY.replace("604800", "-1"),
        POLICY.replace("604800", "soon"),
        "version: STSv1\nmode: enforce\nmax_age: 1",
        POLICY.replace("mail.quay.test", "mail.*.test"),
        POLICY.replace("mail.quay.test", "192.0.2.1:25"),
        POLICY.replace("mail.quay.test", ""),
        POLICY.replace("mail.quay.test", "a." * 127 + "quay.test"),
        POLICY + "<html>\r\n",
        POLICY + "x: " + "y" * 70_000,
        POLICY.replace("quay", "qu\udcffay"),
    ],
)
def test_a_policy_that_may_not_be_used(text: str) -> None:
    with pytest.raises(PolicyError):
        mta_sts.policy(text.encode("utf-8", "surrogateescape"))


@pytest.mark.parametrize("line", ["x: y%sz", "%sz: y", "x%sz", "mx: a%s!", "mx: %s.example"])
def test_a_policy_made_to_be_read_slowly_is_read_quickly(line: str) -> None:
    """TLS-03: every recipient's domain may publish one; nobody waits for it."""
    for filling in (" ", "\t", "a.", "a-", "\r"):
        text = POLICY + line % (filling * (30_000 // len(filling))) + "\r\n"
        began = time.process_time()
        with contextlib.suppress(PolicyError):
            mta_sts.policy(text.encode())
        assert time.process_time() - began < 0.5


def test_a_policy_of_exactly_64_kibibytes_is_read() -> None:
    """TLS-03: and not one octet more."""
    full = POLICY + "x: " + "y" * (mta_sts.LONGEST_POLICY - len(POLICY) - len("x: "))
    assert mta_sts.policy(full.encode()).mode == "enforce"
    with pytest.raises(PolicyError, match="longer than 64"):
        mta_sts.policy(full.encode() + b"y")


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("mail.quay.test", True),
        ("MAIL.quay.test.", True),
        ("mx7.quay.test", True),
        ("a.b.quay.test", False),
        ("quay.test", False),
        ("evilquay.test", False),
        ("mail.quay.test.evil.example", False),
        ("", False),
    ],
)
def test_which_servers_a_policy_allows(host: str, allowed: bool) -> None:
    """RFC 8461 4.1: the star stands for one label."""
    assert mta_sts.policy(POLICY.encode()).allows(host) == allowed
