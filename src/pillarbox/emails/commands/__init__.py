"""Commands under `pillarbox emails`."""
