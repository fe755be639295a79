"""Mail of this installation itself: to teams, and to people."""
