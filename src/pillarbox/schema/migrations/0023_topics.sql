-- compatible since: 16
-- Topics that are not deleted are listed, and deleted ones are collected, without walking over the others.

CREATE INDEX topics_live ON topics (team_id, id) WHERE deleted_at IS NULL;
CREATE INDEX topics_deleted ON topics (team_id, deleted_at) WHERE deleted_at IS NOT NULL;
