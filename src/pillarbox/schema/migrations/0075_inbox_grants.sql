-- compatible since: 16
-- The inbox of a grant for one inbox (docs/decisions/0195). The previous release knows none of the scopes of such a
-- grant, so it lets its tokens do nothing.
ALTER TABLE oauth_grants ADD COLUMN inbox_id uuid;
