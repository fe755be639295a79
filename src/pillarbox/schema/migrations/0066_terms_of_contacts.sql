-- compatible since: 16
-- The terms by which contacts are found among very many, and up to when they are kept (docs/decisions/0181). The previous release
-- neither reads nor writes them; a background job of this one does for all contacts.
CREATE TABLE contact_terms (
    team_id    uuid      NOT NULL,
    contact_id uuid      NOT NULL,
    terms      integer[] NOT NULL,
    PRIMARY KEY (team_id, contact_id)
) WITH (
    fillfactor = 90,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.1
);
CREATE INDEX contact_terms_terms ON contact_terms USING gin (terms);

CREATE TABLE contact_terms_progress (
    id         smallint    NOT NULL PRIMARY KEY CHECK (id = 1),
    kept_until timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
