import type { AnsweredBy } from '@runyard/contract/runs/agent-events';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, text, uuid } from '../../../platform/store/database/statement.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import { readProfiles } from '../../../team/access/profiles.ts';

const readAuthors = defineStatement({
  name: 'read_authors_of_followups',
  text: 'SELECT id, created_by_kind AS kind, created_by_uid AS uid FROM followups WHERE run_id = $1 AND id = ANY($2::uuid[])',
  row: { id: uuid, kind: text<AnsweredBy['type']>(), uid: text() },
});

/** Returns who sent these follow-ups to the run, by id. */
export async function readFollowupAuthors(
  tx: Queryable,
  { runId, teamId }: { readonly runId: string; readonly teamId: string },
  ids: readonly string[],
): Promise<ReadonlyMap<string, AnsweredBy>> {
  const rows = await tx.query(readAuthors, [runId, ids.filter(isUuid)]);
  const actors = rows.flatMap(({ kind, uid }) => (kind === 'run' ? [] : [{ kind, uid }]));
  const profileOf = await readProfiles(tx, teamId, actors);
  return new Map(
    rows.map(({ id, kind, uid }) => {
      const name = kind === 'run' ? undefined : profileOf({ kind, uid }).display_name;
      return [id, { type: kind, uid, ...(name === undefined ? {} : { display_name: name }) }];
    }),
  );
}
