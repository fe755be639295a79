"""Addresses of the reference: which page describes a call of the API."""

from __future__ import annotations

from typing import Final

from pillarbox.kernel.http.openapi import operation_id
from pillarbox.kernel.http.routing import RouteTable
from pillarbox.kernel.wire.problems import Problem

API: Final = "/docs/api"


def slug_of(id: str) -> str:
    """Return the last part of the address of an operation, by its id in the OpenAPI document."""
    return id.replace("_", "-")


def reference_of(table: RouteTable, method: str, path: str) -> str | None:
    """Return the address of the page about a call; None where there is no such route."""
    try:
        route, _ = table.match(method, path)
    except Problem:
        return None
    return f"{API}/{slug_of(operation_id(route.method, route.path))}"
