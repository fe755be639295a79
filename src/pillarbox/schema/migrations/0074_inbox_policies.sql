-- compatible since: 16
-- What programs and people may do with an inbox (docs/decisions/0196). The previous release neither reads nor writes them:
-- while it runs beside this one, mail that it accepts is not judged by a policy.
CREATE TABLE inbox_policies (
    team_id            uuid        NOT NULL,
    inbox_id           uuid        NOT NULL,
    applies_to         text        NOT NULL CHECK (applies_to IN ('programs', 'everybody')),
    allowed_senders    text[]      NOT NULL,
    blocked_senders    text[]      NOT NULL,
    blocked_mail       text        NOT NULL CHECK (blocked_mail IN ('spam', 'refuse')),
    may_write_to       text        NOT NULL CHECK (may_write_to IN ('anybody', 'contacts', 'who_wrote_before', 'listed')),
    allowed_recipients text[]      NOT NULL,
    blocked_recipients text[]      NOT NULL,
    attachments        boolean     NOT NULL,
    messages_per_hour  integer     CHECK (messages_per_hour > 0),
    messages_per_day   integer     CHECK (messages_per_day > 0),
    reply_only         boolean     NOT NULL,
    footer             text,
    approval           text        NOT NULL CHECK (approval IN ('never', 'unknown_recipients', 'always')),
    updated_at         timestamptz NOT NULL,
    hour_at            timestamptz,
    sent_in_hour       integer     NOT NULL DEFAULT 0,
    day_at             timestamptz,
    sent_in_day        integer     NOT NULL DEFAULT 0,
    PRIMARY KEY (team_id, inbox_id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
