import type { Settings } from '@runyard/contract/settings/settings';
import type { Domain } from '../../platform/domain.ts';
import { type Search, searchByName } from '../../platform/search.ts';
import { sealAgain } from '../../platform/secrets/seal-again.ts';
import type { Signer } from '../../platform/secrets/signer.ts';
import { deleteOldChanges } from './audit/record.ts';
import type { FindWaiting } from './contents/waiting-after-change.ts';
import type { CheckDefaults } from './identities/defaults.ts';
import type { ListAgentsOfFactory } from './identities/identities.ts';
import { identityRoutes } from './identity-routes.ts';
import { keyRoutes } from './key-routes.ts';
import { passkeyRoutes } from './passkey-routes.ts';
import { endManagementByHand } from './people/by-rules.ts';
import { takeBackDays } from './people/members.ts';
import { confirmPeople, sealedRefreshTokens } from './sign-on/refresh.ts';
import type { SignOnDeps } from './sign-on/sign-in.ts';
import { watchProviders } from './sign-on/watch-providers.ts';
import { auditRoutes, invitationRoutes, teamRoutes } from './team-routes.ts';
import { workerPoolRoutes } from './worker-pool-routes.ts';

interface AccessDeps extends SignOnDeps {
  /** Returns the URL at which clients reach the service. */
  baseUrl(): string;
  readonly signing: Signer;
  readonly settings: Pick<Settings, 'RUNYARD_RETENTION_AUDIT_DAYS'>;
}

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

/**
 * Teams, people, keys, agent identities and the audit log. An identity may refer to objects of domains that import this domain:
 * `checkIdentity` returns the faults of these references. `agentsOfFactory` returns the agents of a factory as identities. `findWaiting`
 * returns who waits after a change.
 */
export function accessDomain(
  deps: AccessDeps,
  checkIdentity: CheckDefaults,
  agentsOfFactory: ListAgentsOfFactory,
  findWaiting: FindWaiting,
): Domain {
  const watch = watchProviders(deps);
  return {
    name: 'access',
    routes: () => [
      ...keyRoutes(deps),
      ...passkeyRoutes(deps),
      ...teamRoutes(deps),
      ...invitationRoutes(deps),
      ...identityRoutes({ ...deps, checkIdentity, agentsOfFactory, findWaiting }),
      ...auditRoutes(deps),
      ...workerPoolRoutes({ ...deps, findWaiting }),
    ],
    search: accessSearches,
    open: async () => {
      const { db, log, signOn } = deps;
      const unknown = await endManagementByHand(
        db,
        signOn.teams.map(({ team }) => team),
      );
      if (unknown.length > 0) log.warn({ teams: unknown }, 'RUNYARD_OIDC_FILE names teams that do not exist');
      // Do not wait: the service works while a provider is away.
      void watch.ask();
    },
    readiness: { degraded: watch.degraded },
    loops: async () => [
      confirmPeople(deps),
      ...(deps.signOn.providers.length > 0
        ? [{ name: 'asking the identity providers', everyMs: 60_000, work: watch.ask }]
        : []),
    ],
    sealAgain: () => sealAgain(deps.db, deps.vault, sealedRefreshTokens),
    retention: {
      rows: [
        { table: 'audit_days', isOver: `day < (now() AT TIME ZONE 'UTC')::date - 1` },
        { table: 'team_invitations', isOver: 'expires_at < now()' },
        { table: 'sign_on_uses', isOver: 'expires_at < now()' },
        { table: 'passkey_uses', isOver: 'expires_at < now()' },
        { table: 'ended_members', isOver: `ended_at < now() - interval '${takeBackDays} days'` },
      ],
      nightly: [
        {
          name: 'audit_entries_deleted',
          run: async (db) => await deleteOldChanges(db, deps.settings.RUNYARD_RETENTION_AUDIT_DAYS),
        },
      ],
    },
  };
}
