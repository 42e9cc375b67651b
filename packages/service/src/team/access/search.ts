/** Finds the people and the agent identities of a team. */
import { type Search, searchByName } from '../../platform/search.ts';

const people = searchByName({
  kind: 'person',
  statement: 'search_people',
  from: 'FROM team_members m JOIN users u ON u.id = m.user_id WHERE m.team_id = $4',
  uid: 'u.uid',
  name: 'u.display_name',
  changedAt: 'm.joined_at',
  toThing: (found) => ({ ...found, path: '/settings/members' }),
});

const identities = searchByName({
  kind: 'agent',
  statement: 'search_agent_identities',
  from: 'FROM agent_identities WHERE team_id = $4',
  uid: 'uid',
  name: 'name',
  changedAt: 'updated_at',
  toThing: (found) => ({ ...found, path: '/agents' }),
});

export const accessSearches: readonly Search[] = [
  identities,
  // Agents may not list the people of their team.
  { ...people, find: async (db, request) => (request.personUid === null ? [] : await people.find(db, request)) },
];
