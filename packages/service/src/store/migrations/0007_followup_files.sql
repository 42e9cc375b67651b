-- Files that come with a follow-up.
ALTER TABLE attachments ADD COLUMN followup_id uuid REFERENCES followups ON DELETE CASCADE;
CREATE INDEX attachments_followup ON attachments (followup_id, position) WHERE followup_id IS NOT NULL;
