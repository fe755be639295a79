-- compatible since: 16
-- Slow sending and A/B tests of broadcasts (docs/decisions/0184). The previous release neither reads nor writes them.
ALTER TABLE broadcast_recipients ADD COLUMN wave smallint, ADD COLUMN variant smallint;

CREATE TABLE broadcast_plans (
    team_id      uuid     NOT NULL,
    broadcast_id uuid     NOT NULL,
    plan         json     NOT NULL,
    stage        text     CHECK (stage IN ('canary', 'checking', 'testing', 'deciding', 'rest')),
    stage_until  timestamptz,
    next_at      timestamptz,
    winner       smallint,
    PRIMARY KEY (team_id, broadcast_id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

CREATE TABLE broadcast_variants (
    team_id      uuid     NOT NULL,
    broadcast_id uuid     NOT NULL,
    number       smallint NOT NULL CHECK (number BETWEEN 1 AND 4),
    subject      text,
    preview_text text,
    html         text,
    text         text,
    content_id   uuid,
    PRIMARY KEY (team_id, broadcast_id, number)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
