"""What a nightly run says at its end, and its exit status."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from bench.kit import tools
from bench.kit.load import Answered
from bench.kit.results import Report
from bench.nightly import __main__ as nightly
from bench.nightly import recorded
from bench.nightly.judging import Figure, seen
from bench.nightly.measurement import Measurement, Turn
from bench.turns import good

RATIO = Figure("ours ÷ a peer")
STEADY = (4.0, 4.01, 3.99, 4.0, 4.02, 3.98)


def measuring(ratios: Sequence[float], *, trouble: bool = False, missing: bool = False) -> Measurement:
    """A measurement whose turns find these ratios, behind one that warms up."""

    @contextmanager
    def opened(report: Report) -> Iterator[Turn]:
        if missing:
            raise tools.Missing("the peer is not installed")
        left = [0.1, *ratios] * 2

        def turn() -> dict[Figure, float]:
            if trouble:
                report.fault("an answer was 500")
            return {RATIO: left.pop(0)}

        yield turn

    return Measurement(opened, (RATIO,))


@pytest.fixture
def ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ended:
    return Ended(tmp_path, monkeypatch, capsys)


class Ended:
    """Runs one measurement beside a record."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self._folder, self._monkeypatch, self._capsys = folder, monkeypatch, capsys

    def with_record(self, measurement: Measurement, **ratios: float) -> tuple[int, str]:
        """The exit status, and the last line; `ratios` are recorded, `it` is that of the measurement."""
        file = self._folder / "recorded.json"
        found = {RATIO.name if name == "it" else name: seen([ratio]) for name, ratio in ratios.items()}
        recorded.record(file, recorded.this_machine(), found, date="2026-11-23", commit="a", postfix="3.7")
        self._monkeypatch.setattr(recorded, "FILE", file)
        self._monkeypatch.setattr(nightly, "MEASUREMENTS", {"it": measurement})
        report = Report("nightly", short=False, folder=self._folder)
        status = nightly.nightly(report, ["it"], len(STEADY), False)
        return status, self._capsys.readouterr().out.splitlines()[-1].strip()


def test_what_kept_its_ratio_is_no_failure(ended: Ended) -> None:
    found = ended.with_record(measuring(STEADY), it=4.1)
    assert found == (0, "0 fell by more than 5 %, 0 cannot be told, 0 faults")


def test_a_fall_is_a_failure(ended: Ended) -> None:
    found = ended.with_record(measuring(STEADY), it=4.5)
    assert found == (1, "1 fell by more than 5 %, 0 cannot be told, 0 faults")


def test_what_was_compared_with_nothing_is_not_called_kept(ended: Ended) -> None:
    found = ended.with_record(measuring(STEADY))
    assert found == (0, "0 fell by more than 5 %, 1 cannot be told, 0 faults")


def test_a_fall_within_the_noise_is_not_called_kept(ended: Ended) -> None:
    found = ended.with_record(measuring((2.0, 4.0, 2.0, 4.0, 2.0, 4.0)), it=4.0)
    assert found == (0, "0 fell by more than 5 %, 1 cannot be told, 0 faults")


def test_a_recorded_ratio_whose_peer_is_missing_is_a_fault(ended: Ended) -> None:
    assert ended.with_record(measuring((), missing=True), it=4.0)[0] == 1


def test_without_a_record_a_missing_peer_is_none(ended: Ended) -> None:
    assert ended.with_record(measuring((), missing=True))[0] == 0


def test_a_record_that_nothing_measures_is_a_fault(ended: Ended) -> None:
    """A ratio that was renamed would never fall again."""
    assert ended.with_record(measuring(STEADY), it=4.0, renamed=4.0)[0] == 1


def test_wrong_answers_are_a_fault(ended: Ended) -> None:
    assert ended.with_record(measuring(STEADY, trouble=True), it=4.0)[0] == 1


def test_a_version_that_refuses_does_not_look_cheap(tmp_path: Path) -> None:
    report = Report("turns", short=False, folder=tmp_path)

    def answered(requests: int, refused: int) -> int:
        measured = Answered(
            requests=requests, seconds=1.0, refused=refused, broken=0, p50=1.0, p99=2.0, worst=3.0, cpu=0.1
        )
        return good(report, measured)

    assert (answered(100, 0), report.faults) == (100, 0)
    assert (answered(100, 90), report.faults) == (10, 1)
    assert (answered(0, 0), report.faults) == (1, 2)
