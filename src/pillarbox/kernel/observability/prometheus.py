"""The Prometheus endpoint: the metrics of all workers of this supervisor, added up at each request.

Each worker writes its metrics to a file (`kernel.observability.metrics`). The counters and histograms of a
process that is gone are kept in memory and its file is removed, so restarts neither lose counts nor leave
files behind.
"""

from __future__ import annotations

import operator
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Final

import msgspec
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from pillarbox.kernel.network.listeners import ListenError
from pillarbox.kernel.observability.metrics import GREATEST, LEAST, SUFFIX, SUM, Numbers
from pillarbox.kernel.settings.kinds import HostPort

JOINED: Final[dict[str, Callable[[float, float], float]]] = {SUM: operator.add, LEAST: min, GREATEST: max}

_decode = msgspec.json.Decoder(list[Numbers]).decode


class PrometheusServer:
    """An HTTP server for `/metrics`; `at` is where it listens. `others` are asked besides the files."""

    def __init__(self, address: HostPort, folder: Path, *others: Collector) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700, parents=True)
        self.folder = folder
        self._files = MetricsFiles(folder)
        registry = CollectorRegistry()
        for collector in (self._files, *others):
            registry.register(collector)
        try:
            self._server, self._thread = start_http_server(address.port, address.host, registry)
        except OSError as error:
            raise ListenError(f"Cannot listen on {address} (metrics): {error.strerror}.") from None
        self.at = HostPort(address.host, self._server.server_port)

    def forget(self, pid: int) -> None:
        """Forget a process that has ended: drop its gauges, keep its counters."""
        self._files.forget(pid)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        shutil.rmtree(self.folder, ignore_errors=True)


class MetricsFiles(Collector):
    """Adds up the files of the workers. `collect` runs on the server's threads, `forget` on the
    supervisor's."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._gone: dict[str, Numbers] = {}
        self._lock = threading.Lock()

    def forget(self, pid: int) -> None:
        """Keep the counts of a process that ended, and remove its file."""
        path = self._folder / f"{pid}{SUFFIX}"
        with self._lock:
            _add(self._gone, (numbers for numbers in _read(path) if numbers.kind != "gauge"))
            path.unlink(missing_ok=True)
            path.with_suffix(".draft").unlink(missing_ok=True)

    def collect(self) -> Iterator[Metric]:
        """Return every metric once."""
        total: dict[str, Numbers] = {}
        with self._lock:
            _add(total, self._gone.values())
            for path in self._folder.glob(f"*{SUFFIX}"):
                _add(total, _read(path))
        return (_metric(numbers) for numbers in total.values())


def _read(path: Path) -> list[Numbers]:
    try:
        return _decode(path.read_bytes())
    except (OSError, msgspec.MsgspecError):
        return []


def _add(total: dict[str, Numbers], more: Iterable[Numbers]) -> None:
    """Add numbers to a total, set of labels by set of labels."""
    for numbers in more:
        joined = JOINED[numbers.over]
        known = total.get(numbers.name)
        sums = {} if known is None else dict(known.values)
        for labels, values in numbers.values:
            before = sums.get(labels)
            sums[labels] = (
                values if before is None else [joined(a, b) for a, b in zip(before, values, strict=True)]
            )
        total[numbers.name] = msgspec.structs.replace(numbers, values=list(sums.items()))


def _metric(numbers: Numbers) -> Metric:
    if numbers.kind == "counter":
        counter = CounterMetricFamily(numbers.name, numbers.meaning, labels=numbers.labels)
        for labels, values in numbers.values:
            counter.add_metric(labels, values[0])
        return counter
    if numbers.kind == "gauge":
        gauge = GaugeMetricFamily(numbers.name, numbers.meaning, labels=numbers.labels)
        for labels, values in numbers.values:
            gauge.add_metric(labels, values[0])
        return gauge
    histogram = HistogramMetricFamily(numbers.name, numbers.meaning, labels=numbers.labels)
    bounds = [*(str(bound) for bound in numbers.bounds), "+Inf"]
    for labels, values in numbers.values:
        buckets = list(zip(bounds, accumulate(values[:-1]), strict=True))
        histogram.add_metric(labels, buckets, values[-1])
    return histogram
