-- compatible since: 16
-- What was found out about a received mail, in full (docs/decisions/0169); null for mail of before. The previous release writes none.
ALTER TABLE received_emails ADD COLUMN verdicts json;
