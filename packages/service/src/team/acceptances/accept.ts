import type { Acceptance, AcceptRequest, ContentKind } from '@runyard/contract/runs/acceptances';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, integer, nullable, text } from '../../platform/store/database/statement.ts';
import { type Author, recordChange } from '../access/audit/record.ts';
import { writeAcceptance } from '../access/contents/content.ts';
import { isVisible } from './waiting.ts';

/** Locks the content, so that no later revision can be written before the acceptance is committed. */
const lockPresent = defineStatement({
  name: 'lock_present_revision',
  text: `
    SELECT c.revision, c.content->>'name' AS name, (
      SELECT a.revision FROM acceptances a WHERE a.user_uid = $2 AND a.kind = c.kind AND a.uid = c.uid) AS accepted
    FROM content_revisions c WHERE c.kind = $3 AND c.uid = $4 AND c.superseded_at IS NULL AND ${isVisible('$1', '$2')} FOR UPDATE OF c`,
  row: { revision: integer, name: nullable(text()), accepted: nullable(integer) },
});

/** Outcome of an acceptance. `other_revision` 409, with the number of the present revision. `not_found` 404. */
export type AcceptOutcome =
  | { readonly kind: 'accepted'; readonly acceptance: Acceptance }
  | { readonly kind: 'other_revision'; readonly revision: number }
  | { readonly kind: 'not_found' };

/** Accepts the present revision of a content for a person. To accept it again changes nothing. */
export async function accept(
  tx: Queryable,
  by: Author,
  { kind, uid, revision }: AcceptRequest & { readonly kind: ContentKind },
): Promise<AcceptOutcome> {
  const person = by.creator.uid;
  const [present] = await tx.query(lockPresent, [by.teamId, person, kind, uid]);
  if (!present) return { kind: 'not_found' };
  if (present.revision !== revision) return { kind: 'other_revision', revision: present.revision };
  const acceptedAt = await writeAcceptance(tx, person, { kind, uid, revision });
  if (present.accepted !== revision)
    await recordChange(tx, by, {
      action: 'content.accept',
      subject: { type: kind, uid, name: present.name },
      ...(present.accepted === null ? {} : { before: { revision: present.accepted } }),
      after: { revision },
    });
  return { kind: 'accepted', acceptance: { kind, uid, revision, accepted_at: acceptedAt } };
}
