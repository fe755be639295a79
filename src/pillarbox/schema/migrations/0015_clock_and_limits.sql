-- When the machine's clock was set, for `pillarbox doctor`; and a team's own limits of webhooks and API keys.

CREATE TABLE clock_jumps (
    id      uuid             NOT NULL PRIMARY KEY,
    at      timestamptz      NOT NULL,
    seconds double precision NOT NULL,
    kept_at timestamptz      NOT NULL DEFAULT clock_timestamp()
);

ALTER TABLE teams
    ADD COLUMN most_webhooks integer CHECK (most_webhooks >= 0),
    ADD COLUMN most_api_keys integer CHECK (most_api_keys >= 0);
