import { randomUUIDv7 } from 'node:crypto';
import { maxSavedViews } from '@runyard/contract/limits';
import type { CreateSavedViewRequest, SavedView, UpdateSavedViewRequest } from '@runyard/contract/team/saved-views';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, integer, text, timestamp, uuid } from '../../platform/store/database/statement.ts';
import { isUuid } from '../../platform/store/database/uuid.ts';
import { type Author, recordChange } from '../access/audit/record.ts';

/** SQL: the views of the person `$2` in the team `$1`. */
const ofPerson = 'team_id = $1 AND user_id = (SELECT id FROM users WHERE uid = $2)';

const readAll = defineStatement({
  name: 'read_saved_views',
  text: `SELECT id, name, path, (row_number() OVER (ORDER BY position, id) - 1)::integer AS position, created_at
    FROM saved_views WHERE ${ofPerson} ORDER BY position, id`,
  row: { id: uuid, name: text(), path: text(), position: integer, created_at: timestamp },
});

const insert = defineStatement({
  name: 'insert_saved_view',
  text: `
    INSERT INTO saved_views (id, team_id, user_id, name, path, position)
    SELECT $3, $1, id, $4, $5, coalesce((SELECT max(position) + 1 FROM saved_views WHERE ${ofPerson}), 0)
    FROM users WHERE uid = $2`,
  row: {},
});

const update = defineStatement({
  name: 'update_saved_view',
  text: `UPDATE saved_views SET name = coalesce($4, name), path = coalesce($5, path) WHERE ${ofPerson} AND id = $3`,
  row: {},
});

const setOrder = defineStatement({
  name: 'order_saved_views',
  text: `
    UPDATE saved_views v SET position = o.place - 1 FROM unnest($3::uuid[]) WITH ORDINALITY AS o(id, place)
    WHERE v.id = o.id AND ${ofPerson}`,
  row: {},
});

const remove = defineStatement({
  name: 'delete_saved_view',
  text: `DELETE FROM saved_views WHERE ${ofPerson} AND id = $3 RETURNING id, name`,
  row: { id: uuid, name: text() },
});

type Person = Pick<Author, 'teamId' | 'creator'>;

const keyOf = ({ teamId, creator }: Person): [string, string] => [teamId, creator.uid];

/** The entry of the audit log has no path of the view, because only its author sees it. */
const subjectOf = ({ id, name }: Pick<SavedView, 'id' | 'name'>) => ({ type: 'saved_view', uid: id, name });

/** Makes changes of a person's views happen one after another, so that the number and the order of the views are right. */
const lock = (tx: Queryable, person: Person) =>
  tx.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`saved views of ${keyOf(person).join(' in ')}`]);

/** Returns the views of the person in the team, in order. */
export const listSavedViews = async (db: Queryable, person: Person): Promise<SavedView[]> =>
  await db.query(readAll, keyOf(person));

/** Saves a view as the person's last view. `too_many`: the person already has the maximum number of views. */
export async function createSavedView(
  tx: Queryable,
  person: Author,
  { name, path }: CreateSavedViewRequest,
): Promise<SavedView | 'too_many'> {
  await lock(tx, person);
  if ((await listSavedViews(tx, person)).length >= maxSavedViews) return 'too_many';
  const id = randomUUIDv7();
  await tx.query(insert, [...keyOf(person), id, name, path]);
  const made = (await listSavedViews(tx, person)).find((view) => view.id === id);
  if (!made) throw new Error('the view was not inserted');
  await recordChange(tx, person, { action: 'saved_view.create', subject: subjectOf(made) });
  return made;
}

/** Changes and moves a view; null if the person has no view with this id. The id may be any text. */
export async function updateSavedView(
  tx: Queryable,
  person: Author,
  id: string,
  { name, path, position }: UpdateSavedViewRequest,
): Promise<SavedView | null> {
  if (!isUuid(id)) return null;
  await lock(tx, person);
  await tx.query(update, [...keyOf(person), id, name ?? null, path ?? null]);
  const views = await listSavedViews(tx, person);
  const changed = views.find((view) => view.id === id.toLowerCase());
  if (!changed) return null;
  await recordChange(tx, person, { action: 'saved_view.update', subject: subjectOf(changed) });
  if (position === undefined) return changed;
  const order = views.filter((view) => view !== changed);
  order.splice(position, 0, changed);
  await tx.query(setOrder, [...keyOf(person), order.map((view) => view.id)]);
  return { ...changed, position: order.indexOf(changed) };
}

/** Deletes a view. Returns false if the person has no view with this id. The id may be any text. */
export async function deleteSavedView(tx: Queryable, person: Author, id: string): Promise<boolean> {
  if (!isUuid(id)) return false;
  const [gone] = await tx.query(remove, [...keyOf(person), id]);
  if (!gone) return false;
  await recordChange(tx, person, { action: 'saved_view.delete', subject: subjectOf(gone), endsAccess: true });
  return true;
}
