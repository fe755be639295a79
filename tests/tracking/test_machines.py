"""Programs that open mail and follow links, and the rows that an operator adds (TRK-04)."""

from __future__ import annotations

from pathlib import Path

import pytest

from pillarbox.kernel.settings.kinds import WrongValue
from pillarbox.tracking.machines import KINDS, LONGEST_NAME, MACHINES, Machines, WrongRow, read_rows
from pillarbox.tracking.settings import machines_of

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        (FIREFOX, None),
        ("Mozilla/5.0 (Windows NT 5.1) Firefox/11.0 (via ggpht.com GoogleImageProxy)", "gmail_image_proxy"),
        ("YahooMailProxy; https://help.yahoo.com", "yahoo_image_proxy"),
        ("Mozilla/5.0", "apple_mail_privacy"),
        ("  mozilla/5.0 ", "apple_mail_privacy"),
        ("", "no_user_agent"),
        ("curl/8.5.0", "curl"),
        ("Mozilla/5.0 (compatible; Examplebot/2.1)", "bot"),
        ("Outlook-iOS/2.0", None),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) Mobile/15E148", None),
    ],
)
def test_a_program_is_known_by_its_user_agent(agent: str, name: str | None) -> None:
    """TRK-04."""
    assert Machines().name_of(agent, "203.0.113.9", None) == name


def test_names_are_there_once_and_kinds_are_known() -> None:
    assert len({row.name for row in MACHINES}) == len(MACHINES)
    assert {row.kind for row in MACHINES} <= set(KINDS)
    assert all(len(row.name) <= LONGEST_NAME for row in MACHINES)


def test_rows_of_a_file_come_first(tmp_path: Path) -> None:
    file = tmp_path / "machines.toml"
    file.write_text(
        '[[machine]]\nname = "corp"\nkind = "scanner"\nuser_agent = "CorpScan"\n'
        'networks = ["10.1.0.0/16", "::1"]\n'
        '[[machine]]\nname = "ours"\nuser_agent_is = " curl/8.5.0 "\n'
    )
    machines = Machines(machines_of(str(file)))
    assert machines.name_of("x corpscan/2", "203.0.113.9", None) == "corp"
    assert machines.name_of(FIREFOX, "10.1.2.3", None) == "corp"
    assert machines.name_of(FIREFOX, "::1", None) == "corp"
    assert machines.name_of(FIREFOX, "10.2.2.3", None) is None
    assert machines.name_of(FIREFOX, "", None) is None
    assert machines.name_of("curl/8.5.0", "", None) == "ours"
    assert machines.name_of(FIREFOX, "", "prefetch;prerender") == "prefetch"
    assert machines_of("none") == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[machine", "is not TOML"),
        pytest.param("x = " + "[" * 100_000, "nested too deep", id="deep"),
        pytest.param("x = " + "9" * 10_000, "is not TOML", id="many digits"),
        ("x = 1", "other than tables [[machine]]"),
        ("machine = 1", "other than tables [[machine]]"),
        ('[[machine]]\nname = "a"', "neither a user_agent nor networks in machine 1"),
        ('[[machine]]\nuser_agent = "a"', "no name of 1 to 64 visible characters in machine 1"),
        ('[[machine]]\nname = "a\\u001b[31m"\nuser_agent = "x"', "1 to 64 visible characters"),
        ('[[machine]]\nname = "a"\nuser_agent = " "', "empty user_agent"),
        ('[[machine]]\nname = "a"\nuser_agent = "x"\nuser_agent_is = "y"', "user_agent_is beside it"),
        ('[[machine]]\nname = "a"\nuser_agent = 1', "something other than a text"),
        ('[[machine]]\nname = "a"\nnetworks = "x"', "networks that are no list"),
        ('[[machine]]\nname = "a"\nnetworks = ["x"]', "something other than a network"),
        ('[[machine]]\nname = "a"\nkind = "robot"\nuser_agent = "x"', "none of: image proxy"),
        (
            '[[machine]]\nname = "a"\nuser_agent = "x"\n[[machine]]\nnam = "b"',
            "unknown key 'nam' in machine 2",
        ),
    ],
)
def test_what_is_wrong_in_a_file_is_said(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(WrongRow) as wrong:
        read_rows(text)
    assert says in str(wrong.value)
    file = tmp_path / "machines.toml"
    file.write_text(text)
    with pytest.raises(WrongValue) as refused:
        machines_of(str(file))
    assert says in str(refused.value)


def test_a_file_that_is_not_there_or_no_text_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(WrongValue, match="cannot be read"):
        machines_of(str(tmp_path / "none.toml"))
    (tmp_path / "x.toml").write_bytes(b"\xff")
    with pytest.raises(WrongValue, match="UTF-8"):
        machines_of(str(tmp_path / "x.toml"))
