-- compatible since: 16
-- People who were erased: what is left is a hash of their address. The previous release neither reads nor writes it.
CREATE TABLE erasures (
    team_id      uuid        NOT NULL,
    id           uuid        NOT NULL,
    hash         bytea       NOT NULL,
    address      text,
    given        text,
    contact_id   uuid,
    part         text        NOT NULL DEFAULT '',
    place        text        NOT NULL DEFAULT '',
    rows         bigint      NOT NULL DEFAULT 0,
    waiting      bigint      NOT NULL DEFAULT 0,
    created_at   timestamptz NOT NULL,
    completed_at timestamptz,
    PRIMARY KEY (team_id, id),
    CONSTRAINT erasures_team_hash_key UNIQUE (team_id, hash),
    CHECK ((address IS NULL) = (completed_at IS NOT NULL)),
    CHECK (address IS NOT NULL OR (given IS NULL AND contact_id IS NULL))
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- Texts of the log of acts may give way to the address that stands for an erased one; everything else stays.
CREATE OR REPLACE FUNCTION audit_entry_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND OLD.at < statement_timestamp() - interval '30 days' THEN
        RETURN OLD;
    END IF;
    IF TG_OP = 'UPDATE'
       AND (NEW.team_id, NEW.id, NEW.at, NEW.what, NEW.person_id, NEW.key_id, NEW.grant_id, NEW.actor, NEW.address,
            NEW.user_agent)
           IS NOT DISTINCT FROM
           (OLD.team_id, OLD.id, OLD.at, OLD.what, OLD.person_id, OLD.key_id, OLD.grant_id, OLD.actor, OLD.address,
            OLD.user_agent)
       AND (NEW.target IS NOT DISTINCT FROM OLD.target OR NEW.target LIKE '%erased@erased.invalid%')
       AND (NEW.details::text IS NOT DISTINCT FROM OLD.details::text
            OR NEW.details::text LIKE '%erased@erased.invalid%') THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'audit entries are neither changed nor removed' USING ERRCODE = 'insufficient_privilege';
END
$$;
