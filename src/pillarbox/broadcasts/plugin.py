"""What broadcasts brings to the program."""

from __future__ import annotations

from pillarbox.broadcasts.reports import routes as reports
from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.slices import Slice

SLICE = Slice(name="broadcasts", routes=collect(reports))
