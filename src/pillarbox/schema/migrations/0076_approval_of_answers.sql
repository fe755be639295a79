-- compatible since: 16
-- accepted removal: the constraint replaces one that is narrower; the previous release writes none of the new values
-- accepted scan: the table is small
-- Answers to suspicious messages can need a person (docs/decisions/0196). The previous release takes such a policy for one
-- without approval.
ALTER TABLE inbox_policies DROP CONSTRAINT inbox_policies_approval_check;
ALTER TABLE inbox_policies ADD CONSTRAINT inbox_policies_approval_check
    CHECK (approval IN ('never', 'unknown_recipients', 'suspicious', 'always'));
