"""Mail of the installation itself: to people who log in, and to the members of a team."""
