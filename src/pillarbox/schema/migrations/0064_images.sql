-- compatible since: 16
-- Pictures that teams put into their mail. The previous release neither reads nor writes them.
CREATE TABLE images (
    team_id    uuid        NOT NULL,
    id         uuid        NOT NULL,
    name       text        NOT NULL,
    alt        text        NOT NULL,
    media      text        NOT NULL,
    width      integer     NOT NULL,
    height     integer     NOT NULL,
    size       bigint      NOT NULL,
    blob       text        NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (team_id, id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
