-- compatible since: 16
-- Finds the recipients of canaries and of A/B tests, of which there are few (docs/decisions/0184).
DROP INDEX CONCURRENTLY IF EXISTS broadcast_recipients_waves;
CREATE INDEX CONCURRENTLY broadcast_recipients_waves ON broadcast_recipients (team_id, broadcast_id, wave, contact_id)
    WHERE wave IS NOT NULL;
