"""What automations bring to the program."""

from __future__ import annotations

from pillarbox.kernel.slices import Slice

SLICE = Slice(name="automations")
