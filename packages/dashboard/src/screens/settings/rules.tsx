import type { TeamRule } from '@runyard/contract/team/teams';
import { visibleText } from '@runyard/contract/wire/visible';
import { DataTable } from '../../parts/data-table.tsx';
import { Section } from './section.tsx';

/** Shows the rules of single sign-on that manage the team. The operator of the service writes them. */
export function Rules({ rules }: { rules: readonly TeamRule[] }) {
  return (
    <>
      <Section
        title="Rules of single sign-on"
        about={
          <>
            The operator of this service writes them in <code>RUNYARD_OIDC_FILE</code>. If several rules match, the
            highest role counts. A person in none of the groups is not in the team.
          </>
        }
      />
      <DataTable
        aria-label="Rules of single sign-on"
        items={rules}
        keyOf={({ provider, group, role }) => `${provider} ${group} ${role}`}
        columns={(column) => [
          column('Group', { mono: true }, ({ group }) => visibleText(group)),
          column('Identity provider', { width: 280, tone: 'muted' }, ({ provider }) => visibleText(provider)),
          column('Role', { width: 140, tone: 'muted' }, ({ role }) => role),
        ]}
      />
    </>
  );
}
