"""When a nightly run says that a ratio has fallen."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from bench.nightly import recorded
from bench.nightly.judging import Seen, Verdict, is_dearer, judged, kept, seen

CPUINFO = """\
processor\t: 0
cpu family\t: 26
model\t\t: 2
model name\t: AMD EPYC
flags\t\t: fpu avx512f avx512ifma

processor\t: 1
cpu family\t: 26
model\t\t: 2
model name\t: AMD EPYC
flags\t\t: fpu avx512f avx512ifma
"""


def around(middle: float, noise: float, turns: int = 20) -> list[float]:
    chance = random.Random(7)
    return [middle * (1 + chance.uniform(-noise, noise)) for _ in range(turns)]


@pytest.mark.parametrize(
    ("low", "median", "high", "verdict"),
    [
        (3.9, 4.0, 4.1, Verdict.KEPT),
        (4.4, 4.5, 4.6, Verdict.KEPT),
        (3.81, 3.85, 3.9, Verdict.KEPT),
        (3.5, 3.85, 4.2, Verdict.KEPT),
        (3.6, 3.7, 3.79, Verdict.FELL),
        (3.6, 3.7, 3.81, Verdict.INCONCLUSIVE),
        (2.0, 3.0, 4.0, Verdict.INCONCLUSIVE),
        (1.9, 2.0, 2.1, Verdict.FELL),
    ],
)
def test_a_fall_counts_when_all_of_the_interval_lies_below(
    low: float, median: float, high: float, verdict: Verdict
) -> None:
    assert judged(Seen(median, low, high, 20), 4.0) is verdict


@pytest.mark.parametrize(
    ("low", "median", "high", "verdict"),
    [
        (1.15, 1.2, 1.25, Verdict.KEPT),
        (0.9, 1.0, 1.1, Verdict.KEPT),
        (1.25, 1.3, 1.4, Verdict.INCONCLUSIVE),
        (1.27, 1.3, 1.4, Verdict.FELL),
    ],
)
def test_where_less_is_better_a_rise_is_a_fall(
    low: float, median: float, high: float, verdict: Verdict
) -> None:
    assert judged(Seen(median, low, high, 20), 1.2, more_is_better=False) is verdict


def test_a_ratio_without_a_record_has_not_fallen() -> None:
    assert judged(Seen(1.0, 0.9, 1.1, 20), None) is Verdict.UNRECORDED


def test_turns_with_little_noise_tell_five_per_cent_apart() -> None:
    found = seen(around(4.0, 0.04))
    assert found.low <= found.median <= found.high
    assert not found.is_noisy
    assert judged(seen(around(4.0 * 0.9, 0.04)), 4.0) is Verdict.FELL
    assert judged(seen(around(4.0 * 0.99, 0.04)), 4.0) is Verdict.KEPT


def test_noise_larger_than_the_allowed_fall_is_said() -> None:
    assert seen(around(4.0, 0.5)).is_noisy


def test_more_turns_narrow_the_interval() -> None:
    """So a measurement that is inconclusive is repeated."""
    assert seen(around(4.0, 0.3, turns=80)).noise < seen(around(4.0, 0.3, turns=10)).noise


def test_what_is_left_is_told_in_the_good_direction() -> None:
    assert kept(Seen(3.0, 2.0, 4.0, 9), 4.0) == Seen(0.75, 0.5, 1.0, 9)
    assert kept(Seen(2.0, 1.0, 4.0, 9), 1.0, more_is_better=False) == Seen(0.5, 0.25, 1.0, 9)


@pytest.mark.parametrize(
    ("low", "median", "dearer"), [(1.01, 1.06, True), (0.99, 1.2, False), (1.01, 1.04, False)]
)
def test_work_is_dearer_when_it_is_so_by_more_than_chance(low: float, median: float, dearer: bool) -> None:
    assert is_dearer(Seen(median, low, 1.3, 30)) is dearer


def test_machines_of_one_name_are_told_apart() -> None:
    kind = recorded.kind_of_machine(CPUINFO, 2, "3.11.2")
    assert kind == "AMD EPYC, family 26 model 2, with AVX-512 IFMA, 2 cores, Python 3.11.2"
    others = {
        recorded.kind_of_machine(CPUINFO.replace("avx512ifma", ""), 2, "3.11.2"),
        recorded.kind_of_machine(CPUINFO.replace("model\t\t: 2", "model\t\t: 1"), 2, "3.11.2"),
        recorded.kind_of_machine(CPUINFO, 4, "3.11.2"),
        recorded.kind_of_machine(CPUINFO, 2, "3.13.1"),
    }
    assert len(others | {kind}) == 5


def test_a_record_belongs_to_its_kind_of_machine(tmp_path: Path) -> None:
    file = tmp_path / "recorded.json"
    assert recorded.load(file, "this") == {}

    def write(kind: str, **found: float) -> None:
        ratios = {name: Seen(value, value - 0.1, value + 0.1, 15) for name, value in found.items()}
        recorded.record(file, kind, ratios, date="2026-11-23", commit="abc1234", postfix="Postfix 3.7.11")

    write("this", accept=4.0, deliver=5.0)
    write("other", accept=7.0)
    write("this", accept=4.5)
    assert {name: one.ratio for name, one in recorded.load(file, "this").items()} == {
        "accept": 4.5,
        "deliver": 5.0,
    }
    assert recorded.load(file, "other")["accept"].commit == "abc1234"
    assert recorded.load(file, "third") == {}
