import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, timestamp } from '../../../platform/store/database/statement.ts';
import type { ContentRevision } from './content.ts';

const write = defineStatement({
  name: 'write_acceptance',
  text: `
    INSERT INTO acceptances AS a (user_uid, kind, uid, revision) VALUES ($1, $2, $3, $4)
    ON CONFLICT (user_uid, kind, uid) DO UPDATE SET revision = excluded.revision,
      accepted_at = CASE WHEN a.revision = excluded.revision THEN a.accepted_at ELSE excluded.accepted_at END
    RETURNING accepted_at`,
  row: { accepted_at: timestamp },
});

/** Records that a person accepts a revision, in place of an earlier one; returns when the person first did. */
export async function writeAcceptance(
  tx: Queryable,
  personUid: string,
  { kind, uid, revision }: ContentRevision,
): Promise<string> {
  const [written] = await tx.query(write, [personUid, kind, uid, revision]);
  if (!written) throw new Error('the acceptance was not written');
  return written.accepted_at;
}
