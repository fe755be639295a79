"""The slice of tracking."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from pillarbox.kernel.http.hosts import HostRules
from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.security.rate_limit import Windows
from pillarbox.kernel.slices import Background, Container, Slice, Stop
from pillarbox.timeline.record import Timeline
from pillarbox.tracking import routes
from pillarbox.tracking.hosts import TrackingHosts
from pillarbox.tracking.machines import Machines
from pillarbox.tracking.recording import TrackingRecorder
from pillarbox.tracking.settings import TRACKING_MACHINES


def _hosts(kit: Container) -> TrackingHosts:
    public = urlsplit(kit.settings.public_url).hostname or ""
    return TrackingHosts(kit.pool, kit.clock, {public, kit.settings.hostname})


def _background(kit: Container) -> Sequence[Background]:
    recording = kit.need(TrackingRecorder)
    return [Background(stop=(Stop.COMMITS, lambda _: recording.drain()))]


SLICE = Slice(
    name="tracking",
    provides={
        TrackingHosts: _hosts,
        HostRules: lambda kit: HostRules(kit.need(TrackingHosts).serves),
        Machines: lambda kit: Machines(kit.settings[TRACKING_MACHINES]),
        TrackingRecorder: lambda kit: TrackingRecorder(
            kit.pool, kit.clock, kit.need(Timeline), kit.need(Windows)
        ),
    },
    pages=collect(routes),
    background=_background,
)
