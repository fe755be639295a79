-- compatible since: 16
-- Automations and their runs (docs/decisions/0114).

-- `version` is the newest of its graphs. `enabled_at` is since when it starts runs. `epoch` grows when its runs are
-- to end: one that is still running with an older epoch is cancelled. A deleted one stays until its runs are gone.
CREATE TABLE automations (
    team_id    uuid        NOT NULL,
    id         uuid        NOT NULL,
    name       text        NOT NULL,
    status     text        NOT NULL CHECK (status IN ('enabled', 'disabled')),
    version    integer     NOT NULL CHECK (version > 0),
    epoch      integer     NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    enabled_at timestamptz,
    deleted_at timestamptz,
    PRIMARY KEY (team_id, id),
    CHECK ((status = 'enabled') = (enabled_at IS NOT NULL)),
    CHECK (deleted_at IS NULL OR status = 'disabled')
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- The graphs in normal form, as they are shown. A graph never changes: another one is another version.
CREATE TABLE automation_versions (
    team_id       uuid        NOT NULL,
    automation_id uuid        NOT NULL,
    version       integer     NOT NULL,
    steps         json        NOT NULL,
    connections   json        NOT NULL,
    created_at    timestamptz NOT NULL,
    PRIMARY KEY (team_id, automation_id, version)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- What starts runs: a row for each trigger of an automation, while it is enabled. Who starts a run holds a lock
-- on its row (FOR KEY SHARE), so nothing starts once the row is gone.
CREATE TABLE automation_triggers (
    team_id       uuid        NOT NULL,
    event_name    text        NOT NULL,
    automation_id uuid        NOT NULL,
    trigger_key   text        NOT NULL,
    version       integer     NOT NULL,
    epoch         integer     NOT NULL,
    enabled_at    timestamptz NOT NULL,
    PRIMARY KEY (team_id, event_name, automation_id, trigger_key)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
CREATE INDEX automation_triggers_automation ON automation_triggers (team_id, automation_id);

-- A walk of one contact through a graph. `payload` is that of the event that started it, `waited` has the payload of
-- the last event of each name that it waited for. `contact_deleted_at` is when a step of the run deleted its contact.
CREATE TABLE automation_runs (
    team_id            uuid        NOT NULL,
    id                 uuid        NOT NULL,
    automation_id      uuid        NOT NULL,
    version            integer     NOT NULL,
    epoch              integer     NOT NULL,
    event_id           uuid        NOT NULL,
    event_name         text        NOT NULL,
    trigger_key        text        NOT NULL,
    contact_id         uuid        NOT NULL,
    status             text        NOT NULL CHECK (status IN ('running', 'completed', 'failed', 'cancelled')),
    payload            json        NOT NULL,
    waited             json,
    contact_deleted_at timestamptz,
    created_at         timestamptz NOT NULL,
    started_at         timestamptz,
    completed_at       timestamptz,
    PRIMARY KEY (team_id, id),
    CONSTRAINT automation_runs_once UNIQUE (team_id, event_id, automation_id, trigger_key),
    CHECK ((status = 'running') = (completed_at IS NULL))
) WITH (
    fillfactor = 80,
    toast_tuple_target = 1024,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.1
);
CREATE INDEX automation_runs_list ON automation_runs (team_id, automation_id, status, id);
CREATE INDEX automation_runs_contact ON automation_runs (team_id, contact_id) WHERE status = 'running';
CREATE INDEX automation_runs_ended ON automation_runs (team_id, completed_at) WHERE completed_at IS NOT NULL;

-- The steps that a run has reached, by their places in the graph's list: each once. What has no row is pending, or
-- skipped where no way leads to it any more.
CREATE TABLE automation_steps (
    team_id      uuid        NOT NULL,
    run_id       uuid        NOT NULL,
    position     smallint    NOT NULL,
    status       text        NOT NULL CHECK (status IN ('running', 'waiting', 'completed', 'failed', 'skipped')),
    started_at   timestamptz,
    completed_at timestamptz,
    output       json,
    error        json,
    PRIMARY KEY (team_id, run_id, position)
) WITH (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.1
);

-- What runs have to do, a row for each step that is ready or waits: `waiting` says that the step has begun and
-- ends at `due_at`. One that waits for an event has its name in `event_name`; only events from `waits_from` on
-- count. Same lease rules as `deliveries`; `failing_since` is null while nothing went wrong.
CREATE TABLE automation_work (
    team_id         uuid        NOT NULL,
    run_id          uuid        NOT NULL,
    position        smallint    NOT NULL,
    contact_id      uuid        NOT NULL,
    due_at          timestamptz NOT NULL,
    waiting         boolean     NOT NULL,
    event_name      text,
    waits_from      timestamptz,
    owner           uuid,
    leased_until    timestamptz,
    attempt         integer     NOT NULL DEFAULT 0,
    tries           integer     NOT NULL DEFAULT 0,
    failing_since   timestamptz,
    reason          text,
    restored_due_at timestamptz,
    PRIMARY KEY (team_id, run_id, position),
    CHECK ((owner IS NULL) = (leased_until IS NULL)),
    CHECK ((event_name IS NULL) = (waits_from IS NULL)),
    CHECK (event_name IS NULL OR waiting)
) WITH (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.1,
    autovacuum_analyze_threshold = 5000
);
CREATE INDEX automation_work_due ON automation_work (team_id, due_at) WHERE owner IS NULL;
CREATE INDEX automation_work_leased ON automation_work (leased_until) WHERE owner IS NOT NULL;
CREATE INDEX automation_work_waits ON automation_work (team_id, event_name, contact_id)
 WHERE event_name IS NOT NULL;
