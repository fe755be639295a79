"""Mail protocols. Bytes in, values out: no team, no database, no configuration."""
