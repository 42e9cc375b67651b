import type { Settings } from '@runyard/contract/settings';
import type { Domain } from '../../../platform/domain.ts';
import { deleteOldChanges } from '../audit/delete-old.ts';

/** Teams, people, keys, agent identities and the audit log. */
export function accessDomain(deps: { readonly settings: Pick<Settings, 'RUNYARD_RETENTION_AUDIT_DAYS'> }): Domain {
  return {
    name: 'access',
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
