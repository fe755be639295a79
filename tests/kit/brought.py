"""What all slices together bring: the routes, and the types of webhook events."""

from __future__ import annotations

from pillarbox.application import SLICES

ROUTES = [route for one in SLICES for route in one.routes]
CAPTURE_ROUTES = [route for one in SLICES for route in one.closed_routes]
"""Only with the route `capture`."""

WEBHOOKS = {kind: shape for one in SLICES for kind, shape in one.webhook_shapes.items()}
