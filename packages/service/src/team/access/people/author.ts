import type { Role } from '@runyard/contract/wire/access';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, nullable, text } from '../../../platform/store/database/statement.ts';
import type { Author } from '../audit/record.ts';

const readOne = defineStatement({
  name: 'read_person_of_team',
  text: `
    SELECT u.uid, u.display_name, u.email, m.role FROM team_members m JOIN users u ON u.id = m.user_id
    WHERE m.team_id = $1 AND u.uid = $2`,
  row: { uid: text(), display_name: text(), email: nullable(text()), role: text<Role>() },
});

/** Returns a person for whom the service acts without a request, with the present role; null: the team has no such person. */
export async function readAuthor(
  db: Queryable,
  teamId: string,
  userUid: string,
): Promise<(Author & { readonly role: Role }) | null> {
  const [found] = await db.query(readOne, [teamId, userUid]);
  if (!found) return null;
  const { uid, display_name: displayName, email, role } = found;
  const creator = { kind: 'user', uid, displayName, ...(email === null ? {} : { email }) } as const;
  return { teamId, creator, from: null, keyId: null, role };
}
