/** Converts revisions that wait for the acceptance of a person to notifications. */
import { createHash } from 'node:crypto';
import type { Notification } from '@runyard/contract/inbox/notifications';
import type { WaitingContent } from '@runyard/contract/runs/acceptances';
import type { Queryable } from '../../platform/store/database/database.ts';
import { marksOf, type Person } from './marks.ts';

/**
 * Returns the UID of the notification about a revision that waits for a person. It is the same each time, so the marks of the person are
 * found again. Like a UUIDv7, it begins with the time at which the revision was written.
 */
export function uidOfAcceptance({ teamId, uid }: Person, content: WaitingContent): string {
  const hash = createHash('sha256')
    .update(JSON.stringify([teamId, uid, content.kind, content.uid, content.revision]))
    .digest('hex');
  const time = Math.floor(Date.parse(content.written_at)).toString(16).padStart(12, '0');
  return [time.slice(0, 8), time.slice(8, 12), `7${hash.slice(0, 3)}`, `8${hash.slice(3, 6)}`, hash.slice(6, 18)].join(
    '-',
  );
}

/** Returns the notifications about revisions that wait for the person, without those that the person has dismissed, newest first. */
export async function notificationsOfAcceptances(
  db: Queryable,
  person: Person & { readonly email?: string | undefined },
  waiting: readonly WaitingContent[],
): Promise<(Notification & { is_read: boolean })[]> {
  const all = waiting.map((content) => ({ content, uid: uidOfAcceptance(person, content) }));
  const marks = await marksOf(
    db,
    person,
    all.map(({ uid }) => uid),
  );
  return all
    .filter(({ uid }) => marks.get(uid)?.is_dismissed !== true)
    .sort((a, b) => (a.uid < b.uid ? 1 : -1))
    .map(({ content, uid }) => ({
      notification_uid: uid,
      factory_uid: content.kind === 'definition' ? content.uid : null,
      factory_task_uid: null,
      kind: 'acceptance' as const,
      stage: null,
      title: content.name ?? content.uid,
      description: describe(content),
      is_read: marks.get(uid)?.is_read ?? false,
      recipients: [{ uid: person.uid, ...(person.email === undefined ? {} : { email: person.email }) }],
      created_at: content.written_at,
      acceptance: { kind: content.kind, uid: content.uid, revision: content.revision },
    }));
}

function describe({ revision, kind, authors }: WaitingContent): string {
  const names = authors.map(({ display_name, uid }) => display_name ?? uid).join(', ') || 'an unknown author';
  return `Revision ${revision} of the ${kind.replaceAll('_', ' ')} has texts of ${names}`;
}
