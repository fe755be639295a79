"""Pillarbox, a self-hosted email platform."""

from pillarbox.kernel.process import compiled

__version__ = "0.1.0"

compiled.use()
