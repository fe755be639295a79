"""Commands under `pillarbox queue`, and the words for why an email waits."""
