import type { TeamRule } from '@runyard/contract/team/teams';
import { visibleText } from '@runyard/contract/wire/visible';
import { Cell, Table } from '../../parts/table.tsx';
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
      <Table
        aria-label="Rules of single sign-on"
        columns={[{ name: 'Group' }, { name: 'Identity provider', width: 280 }, { name: 'Role', width: 140 }]}
      >
        {rules.map(({ provider, group, role }) => (
          <tr key={`${provider} ${group} ${role}`}>
            <Cell mono>{visibleText(group)}</Cell>
            <Cell tone="muted">{visibleText(provider)}</Cell>
            <Cell tone="muted">{role}</Cell>
          </tr>
        ))}
      </Table>
    </>
  );
}
