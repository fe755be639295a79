"""Fails when a ratio has fallen by more than 5 %: `python -m bench.nightly [NAME …]`.

Each ratio to a peer, and each p99 beside other work ÷ alone, is measured in turns and compared with the ratio
that `bench/recorded.json` has for this kind of machine. With `--against REF` the processor time of the same
work is compared with that of another commit instead, which tells 5 % much better.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.kit import machine, tools
from bench.kit.results import Report
from bench.nightly import against, recorded
from bench.nightly.judging import Figure, Seen, Verdict, judged, kept, seen
from bench.nightly.measurement import Measurement
from bench.nightly.ratios import MEASUREMENTS
from bench.turns import LOADS

TURNS, TURNS_SHORT = 15, 2
TURNS_AGAINST = 30

Samples = dict[Figure, list[float]]


class Nightly:
    """One run: what was measured, and what has fallen."""

    def __init__(self, report: Report, turns: int) -> None:
        self._report = report
        self._turns = turns
        self._records = recorded.load(recorded.FILE, recorded.this_machine())
        self.found: dict[Figure, Seen] = {}
        self.fallen: list[str] = []
        self.untold: list[str] = []
        """What was measured and says nothing: without a record, or not to be told from noise."""

    def measure(self, name: str, measurement: Measurement) -> None:
        """Measure, once more where a fall and noise cannot be told apart, and judge."""
        samples: Samples = defaultdict(list)
        try:
            self._take(name, measurement, samples)
            if self._unclear(samples):
                self._report.note(f"{name}: inconclusive, so as many turns again")
                self._take(f"{name}-again", measurement, samples)
        except tools.Missing as missing:
            self._skip(name, measurement, str(missing))
            return
        for figure, ratios in samples.items():
            self._judge(figure, seen(ratios))

    def _take(self, name: str, measurement: Measurement, samples: Samples) -> None:
        folder = self._report.folder / name
        folder.mkdir()
        folder.chmod(0o755)
        inner = Report("nightly", short=self._report.short, folder=folder)
        with measurement.open(inner) as turn:
            # The first turn warms up both sides.
            for at in range(self._turns + 1):
                for figure, ratio in turn().items():
                    if at:
                        samples[figure].append(ratio)
        self._report.faults += inner.faults

    def _unclear(self, samples: Samples) -> bool:
        return any(
            self._verdict(figure, seen(some)) is Verdict.INCONCLUSIVE for figure, some in samples.items()
        )

    def _verdict(self, figure: Figure, found: Seen) -> Verdict:
        before = self._records.get(figure.name)
        return judged(found, before.ratio if before else None, more_is_better=figure.more_is_better)

    def _judge(self, figure: Figure, found: Seen) -> None:
        before, verdict = self._records.get(figure.name), self._verdict(figure, found)
        self.found[figure] = found
        note = f"between {found.low:.2f} and {found.high:.2f} in {found.turns} turns; "
        if before is None:
            note += verdict.value
        else:
            share = kept(found, before.ratio, more_is_better=figure.more_is_better).median
            note += f"recorded {before.ratio:.2f} on {before.date} at {before.commit}: "
            note += f"{share:.2f} of it is left, {verdict.value}"
        self._report.result(figure.name, found.median, "×", note=note)
        if found.is_noisy:
            self._report.note(f"the noise of this run is {found.noise:.0%}, more than 5 %")
        if verdict is Verdict.FELL:
            self.fallen.append(figure.name)
        elif verdict is not Verdict.KEPT:
            self.untold.append(f"{figure.name}: {verdict.value}")

    def look_for_forgotten(self) -> None:
        """A record that nothing measures any more keeps nobody from falling."""
        known = {figure.name for measurement in MEASUREMENTS.values() for figure in measurement.figures}
        if forgotten := sorted(self._records.keys() - known):
            self._report.fault(f"recorded, and measured by nothing: {', '.join(forgotten)}")

    def _skip(self, name: str, measurement: Measurement, reason: str) -> None:
        """What is recorded and cannot be measured is not known to have kept its ratio."""
        self._report.skip(name, reason)
        missed = [figure.name for figure in measurement.figures if figure.name in self._records]
        if missed:
            self._report.fault(f"recorded, and not measured: {', '.join(missed)}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.nightly", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(MEASUREMENTS)}; all without it"
    )
    parser.add_argument("--turns", type=int, help=f"of each side; {TURNS}, with --against {TURNS_AGAINST}")
    parser.add_argument("--short", action="store_true", help="small amounts, to see that everything runs")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--record", action="store_true", help="write the ratios into bench/recorded.json")
    chosen.add_argument("--against", metavar="REF", help=f"compare {', '.join(LOADS)} with this commit")
    wanted = parser.parse_args(arguments)
    known = list(LOADS if wanted.against else MEASUREMENTS)
    if unknown := [name for name in wanted.names if name not in known]:
        parser.error(f"nothing is called {', '.join(unknown)}; there are {', '.join(known)}")
    if wanted.record and wanted.short:
        parser.error("a short run is too small to be recorded")
    # Without this the end by a signal would leave servers behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="pillarbox-bench-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        report = Report("nightly", short=wanted.short, folder=Path(folder))
        for line in machine.facts(report.folder):
            report.note(line)
        names = wanted.names or known
        if wanted.against:
            count = wanted.turns or TURNS_AGAINST
            return ended(report, *against.compare(report, wanted.against, names, count))
        return nightly(report, names, wanted.turns or (TURNS_SHORT if wanted.short else TURNS), wanted.record)


def nightly(report: Report, names: Iterable[str], turns: int, is_recording: bool) -> int:
    """Measure these; the exit status."""
    kind = recorded.this_machine()
    report.note(f"recorded ratios of: {kind}")
    if not recorded.load(recorded.FILE, kind) and not is_recording:
        report.note("this kind of machine has no record; --record writes one")
    run = Nightly(report, turns)
    run.look_for_forgotten()
    for name in names:
        run.measure(name, MEASUREMENTS[name])
    if not is_recording:
        return ended(report, [] if report.short else run.fallen, run.untold)
    if report.faults:
        report.note("nothing is recorded of a run with faults")
    else:
        found = {figure.name: one for figure, one in run.found.items()}
        date, commit = f"{datetime.now(UTC):%Y-%m-%d}", machine.commit()
        recorded.record(
            recorded.FILE, kind, found, date=date, commit=commit, postfix=machine.postfix_version()
        )
        report.note(f"{len(found)} ratios are recorded")
    return 1 if report.faults else 0


def ended(report: Report, fallen: Sequence[str], untold: Sequence[str]) -> int:
    """Name what has fallen, and what is not known to have kept its ratio; the exit status."""
    for one in fallen:
        print(f"  FELL  {one}", flush=True)
    for one in untold:
        print(f"  ?     {one}", flush=True)
    told = f"{len(fallen)} fell by more than 5 %, {len(untold)} cannot be told"
    print(f"  {told}, {report.faults} faults", flush=True)
    return 1 if fallen or report.faults else 0


if __name__ == "__main__":
    sys.exit(main())
