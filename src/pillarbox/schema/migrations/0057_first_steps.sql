-- compatible since: 16
-- Whether a member has put the list of first steps away. The previous release neither reads nor writes it.
ALTER TABLE team_members ADD COLUMN are_first_steps_hidden boolean NOT NULL DEFAULT false;
