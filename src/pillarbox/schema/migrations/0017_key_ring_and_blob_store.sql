-- compatible since: 16
-- What belongs to the database but lives outside of it is known to the database: a start compares.
CREATE TABLE key_ring_keys (
    id           text        NOT NULL PRIMARY KEY,
    probe        bytea       NOT NULL,
    context      bytea       NOT NULL,
    since        timestamptz NOT NULL DEFAULT now(),
    abandoned_at timestamptz
);

CREATE TABLE blob_store (
    id smallint NOT NULL PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    store_id uuid NOT NULL
);

-- Keys that an earlier release has used: one value of each is the probe. The head of a sealed value is its
-- version, the length of the key's id, and the id.
INSERT INTO key_ring_keys (id, probe, context)
SELECT DISTINCT ON (1) convert_from(substring(sealed FROM 3 FOR get_byte(sealed, 1)), 'SQL_ASCII'), sealed, context
  FROM (SELECT private_key AS sealed,
               convert_to('dkim_keys', 'SQL_ASCII') || uuid_send(id) AS context
          FROM dkim_keys
         UNION ALL
        SELECT secret, convert_to('webhooks', 'SQL_ASCII') || uuid_send(id)
          FROM webhooks
         CROSS JOIN LATERAL unnest(secrets) AS secret) AS used
 WHERE length(sealed) > 30 AND get_byte(sealed, 0) = 1;
