-- compatible since: 16
-- Fails the statement that calls it (docs/decisions/0026). The previous release does not call it.
CREATE FUNCTION fail_statement(reason text) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%', reason USING ERRCODE = 'PB001';
END
$$;
