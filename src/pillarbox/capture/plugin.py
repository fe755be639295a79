"""The slice of capture: the store of mail that is not sent, and the pages and routes that show it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pillarbox.capture import json_routes, routes
from pillarbox.capture.access import CaptureAccess
from pillarbox.capture.arrivals import CHANNEL
from pillarbox.capture.invariants import INVARIANTS
from pillarbox.capture.personal_data import PERSONAL_DATA
from pillarbox.capture.queries import CAPTURED
from pillarbox.capture.reading import Reader, kept_message
from pillarbox.capture.settings import CAPTURE_LIMIT, CAPTURE_NETWORKS
from pillarbox.capture.store import Capture
from pillarbox.dashboard.page_work import PageWork
from pillarbox.delivery.plugin import CapturedMail
from pillarbox.emails.raw_mail.messages import KeptMessages
from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.settings.kinds import RouteKind
from pillarbox.kernel.settings.settings import Settings
from pillarbox.kernel.slices import Background, Container, Slice, StartOrder, Stop
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.receiving.plugin import ArrivalNotice


def _is_on(settings: Settings) -> bool:
    return settings.route.kind is RouteKind.CAPTURE


def _store(kit: Container) -> Capture:
    parts = kit.need(Ids), kit.need(BlobStore), kit.settings[CAPTURE_LIMIT], kit.need(KeyRing)
    return Capture(kit.pool, kit.clock, *parts)


def _notice(kit: Container) -> ArrivalNotice | None:
    return ArrivalNotice(kit.need(Capture).arrivals.announce) if _is_on(kit.settings) else None


def _reader(kit: Container) -> Reader | None:
    parts = kit.need(BlobStore), kit.need(PageWork), kit.need(KeyRing)
    return Reader(kit.pool, *parts) if _is_on(kit.settings) else None


def _access(kit: Container) -> CaptureAccess | None:
    settings = kit.settings
    if not _is_on(settings):
        return None
    hosts = (settings.http.host, settings.hostname)
    token, networks = kit.runtime.capture_token, settings[CAPTURE_NETWORKS]
    return CaptureAccess.named(token, hosts, settings.public_url, networks)


def _listeners(kit: Container) -> Mapping[str, Callable[[], None]]:
    return {CHANNEL: kit.need(Capture).arrivals.wake_waiting} if _is_on(kit.settings) else {}


def _background(kit: Container) -> Sequence[Background]:
    """Return the store's background work, which also removes old mail where nothing is captured any more."""
    store = kit.need(Capture)
    stop = (Stop.WAITERS, lambda _: store.stop())
    return [Background((StartOrder.WAITERS, store.start), store.arrivals.close, stop)]


SLICE = Slice(
    name="capture",
    provides={
        Capture: _store,
        CapturedMail: lambda kit: CapturedMail(kit.need(Capture).keep),
        ArrivalNotice: _notice,
        KeptMessages: lambda kit: KeptMessages(kept_message) if _is_on(kit.settings) else None,
        Reader: _reader,
        CaptureAccess: _access,
    },
    closed_routes=collect(json_routes),
    closed_pages=collect(routes),
    opens=_is_on,
    listeners=_listeners,
    background=_background,
    personal_data=PERSONAL_DATA,
    invariants=INVARIANTS,
    sealed=[CAPTURED],
)
