-- sent: forwarded, the answer of the code host is awaited. unknown: there was none, or the service was killed before it was recorded.
ALTER TABLE pushed_branches DROP CONSTRAINT pushed_branches_result_check;
ALTER TABLE pushed_branches ADD CONSTRAINT pushed_branches_result_check
  CHECK (result IN ('sent', 'unknown', 'pushed', 'rejected', 'refused'));
CREATE INDEX pushed_branches_sent ON pushed_branches (created_at) WHERE result = 'sent';
