"""Checks access tokens on the routes of the API, and the grants behind them (oauth.md 1 and 8)."""
