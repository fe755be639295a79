"""Contact properties: what a team keeps about its contacts besides their names."""
