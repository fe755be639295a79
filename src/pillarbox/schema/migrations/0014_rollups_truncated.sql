-- TRUNCATE removes rollups without saying which: no day has any then.
CREATE FUNCTION forget_rollup_versions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM rollup_versions;
    RETURN NULL;
END
$$;

CREATE TRIGGER rollups_truncated AFTER TRUNCATE ON rollups
    FOR EACH STATEMENT EXECUTE FUNCTION forget_rollup_versions();
