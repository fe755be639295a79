"""Counts what teams use of their quotas (conventions sections 8 and 12).

A unit is one recipient of an email that was accepted, or one email that was received. Units of sent mail are
counted where metrics are: `timeline.record` notes them in the very commit that accepts the email, for every
team, so a quota has no counts of its own that could differ. `usage_days` has only what the rollups do not
have: units given back, and emails received. What a team has used is the sum of the three.

For a team with a quota that sum is taken under a lock of the team, which is held until the commit: two
requests can never both have the last unit. Teams without one take no lock and ask nothing.

Begin with `quotas.py` and `counting.py`.
"""
