/** Finds the people and the agent identities of a team. */
import { type Search, searchByName, searchValues } from '../../platform/search.ts';
import { boolean, defineStatement, text, timestamp } from '../../platform/store/database/statement.ts';

const row = { uid: text(), name: text(), changed_at: timestamp, is_id_match: boolean };

const findPeople = defineStatement({
  name: 'search_people',
  text: searchByName({
    from: 'FROM team_members m JOIN users u ON u.id = m.user_id WHERE m.team_id = $4',
    uid: 'u.uid',
    name: 'u.display_name',
    changedAt: 'm.joined_at',
  }),
  row,
});

const findIdentities = defineStatement({
  name: 'search_agent_identities',
  text: searchByName({
    from: 'FROM agent_identities WHERE team_id = $4',
    uid: 'uid',
    name: 'name',
    changedAt: 'updated_at',
  }),
  row,
});

/** Agents may not list the people of their team. */
const people: Search = {
  kind: 'person',
  find: async (db, request) => {
    if (request.personUid === null) return [];
    const rows = await db.query(findPeople, [...searchValues(request), request.teamId]);
    return rows.map((found) => ({ ...found, path: '/settings/members' }));
  },
};

const identities: Search = {
  kind: 'agent',
  find: async (db, request) => {
    const rows = await db.query(findIdentities, [...searchValues(request), request.teamId]);
    return rows.map((found) => ({ ...found, path: '/agents' }));
  },
};

export const accessSearches: readonly Search[] = [identities, people];
