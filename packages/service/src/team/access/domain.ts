import type { Settings } from '@runyard/contract/settings/settings';
import type { Domain } from '../../platform/domain.ts';
import type { Signer } from '../../platform/secrets/signer.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { deleteOldChanges } from './audit/record.ts';
import type { CheckDefaults } from './identities/defaults.ts';
import type { ListAgentsOfFactory } from './identities/identities.ts';
import { identityRoutes } from './identity-routes.ts';
import { keyRoutes } from './key-routes.ts';
import { accessSearches } from './search.ts';
import { auditRoutes, invitationRoutes, teamRoutes } from './team-routes.ts';
import { workerPoolRoutes } from './worker-pool-routes.ts';

interface AccessDeps {
  readonly db: Database;
  readonly signing: Signer;
  readonly settings: Pick<Settings, 'RUNYARD_RETENTION_AUDIT_DAYS'>;
}

/**
 * Teams, people, keys, agent identities and the audit log. `checkIdentity` returns the faults of an identity's references to domains above
 * this one, and `agentsOfFactory` the agents of a factory in the form of identities.
 */
export function accessDomain(
  deps: AccessDeps,
  checkIdentity: CheckDefaults,
  agentsOfFactory: ListAgentsOfFactory,
): Domain {
  return {
    name: 'access',
    routes: () => [
      ...keyRoutes(deps),
      ...teamRoutes(deps),
      ...invitationRoutes(deps),
      ...identityRoutes({ ...deps, checkIdentity, agentsOfFactory }),
      ...auditRoutes(deps),
      ...workerPoolRoutes(deps),
    ],
    search: accessSearches,
    retention: {
      rows: [
        { table: 'audit_days', isOver: `day < (now() AT TIME ZONE 'UTC')::date - 1` },
        { table: 'team_invitations', isOver: 'expires_at < now()' },
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
