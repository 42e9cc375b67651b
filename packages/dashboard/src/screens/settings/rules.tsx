import type { TeamRule } from '@runyard/contract/team/teams';
import { visibleText } from '@runyard/contract/wire/visible';
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
      <div className="card">
        <table className="tbl in-card" aria-label="Rules of single sign-on">
          <thead>
            <tr>
              <th>Group</th>
              <th className="w280">Identity provider</th>
              <th className="w140">Role</th>
            </tr>
          </thead>
          <tbody>
            {rules.map(({ provider, group, role }) => (
              <tr key={`${provider} ${group} ${role}`}>
                <td className="mono">{visibleText(group)}</td>
                <td className="mut">{visibleText(provider)}</td>
                <td className="mut">{role}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
