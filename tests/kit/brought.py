"""What all slices together bring: routes, types of webhook events, invariants."""

from __future__ import annotations

from pillarbox.application import SLICES

ROUTES = [route for one in SLICES for route in (*one.routes, *one.pages)]
CAPTURE_ROUTES = [route for one in SLICES for route in (*one.closed_pages, *one.closed_routes)]
"""Served only where a setting says so."""

WEBHOOKS = {kind: shape for one in SLICES for kind, shape in one.webhook_shapes.items()}

INVARIANTS = [invariant for one in SLICES for invariant in one.invariants]
