-- compatible since: 16
-- accepted removal: the constraints replace one that is narrower, of a small table; the previous release writes none of
-- the new permission
-- Keys for one inbox (docs/decisions/0195). The previous release knows no permission of this name, so it answers 500 to
-- such a key, and lets it do nothing.
ALTER TABLE api_keys DROP CONSTRAINT api_keys_permission_check;
ALTER TABLE api_keys ADD CONSTRAINT api_keys_permission_check
    CHECK (permission IN ('full_access', 'sending_access', 'inbox_access'));
ALTER TABLE api_keys ADD COLUMN inbox_id uuid;
ALTER TABLE api_keys ADD COLUMN rights text[];
ALTER TABLE api_keys ADD CONSTRAINT api_keys_inbox_check CHECK (
    CASE WHEN permission = 'inbox_access'
         THEN inbox_id IS NOT NULL AND cardinality(rights) > 0 AND rights <@ '{read,label,draft,send}'
         ELSE inbox_id IS NULL AND rights IS NULL END);
