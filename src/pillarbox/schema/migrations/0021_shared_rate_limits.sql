-- compatible since: 16
-- Limits of API requests over several nodes (docs/decisions/0054). Unlogged: what these tables say is over in seconds.

CREATE UNLOGGED TABLE rate_windows (
    team_id uuid        NOT NULL PRIMARY KEY,
    ends_at timestamptz NOT NULL,
    most    integer     NOT NULL,
    granted integer     NOT NULL,
    taken   integer     NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 1000);

CREATE UNLOGGED TABLE rate_nodes (
    id      text        NOT NULL PRIMARY KEY,
    seen_at timestamptz NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 1000);
