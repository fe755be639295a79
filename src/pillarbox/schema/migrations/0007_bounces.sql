-- Transport security of other domains: their MTA-STS policies, kept as long as they said (RFC 8461, 3.2).

CREATE TABLE mta_sts_policies (
    domain     text        NOT NULL PRIMARY KEY,
    id         text        NOT NULL,
    mode       text        NOT NULL CHECK (mode IN ('enforce', 'testing', 'none')),
    hosts      text[]      NOT NULL,
    max_age    integer     NOT NULL,
    fetched_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
