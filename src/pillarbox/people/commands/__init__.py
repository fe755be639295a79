"""Commands under `pillarbox people`."""
