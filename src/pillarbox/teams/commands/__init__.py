"""Commands under `pillarbox teams`, and how others name a team."""
