-- compatible since: 16
-- accepted lock: no release before this one has inboxes, so nobody writes
-- All drafts of an inbox, those that were sent too: they are removed with it (docs/decisions/0092).

CREATE INDEX inbox_drafts_inbox ON inbox_drafts (team_id, inbox_id, id);
