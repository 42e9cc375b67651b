import type { TeamInvitation } from '@runyard/contract/team/teams';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useClient, useSession } from '../../api/session.ts';
import { ConfirmDialog } from '../../parts/dialog.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { nameOf } from '../../parts/person.tsx';
import { Ago } from '../../parts/time.tsx';

/** Shows the invitations that nobody has used yet. */
export function Invitations() {
  const client = useClient();
  const queries = useQueryClient();
  const { team } = useSession();
  const key = ['invitations', team.uid];
  const invitations = useQuery({
    queryKey: key,
    queryFn: async () => (await client.listTeamInvitations({ params: { teamUid: team.uid } })).invitations,
  });
  const [leaving, setLeaving] = useState<TeamInvitation | undefined>();
  return (
    <Loaded query={invitations} rows={1}>
      {(list) =>
        list.length === 0 ? null : (
          <>
            <h2>
              Invitations that wait <span className="dim">{list.length}</span>
            </h2>
            <div className="card">
              <table className="tbl in-card" aria-label="Invitations that wait">
                <tbody>
                  {list.map((invitation) => (
                    <tr key={invitation.id}>
                      <td className={invitation.note === undefined ? 'dim' : ''}>
                        {invitation.note === undefined ? 'without a note' : visibleText(invitation.note)}
                      </td>
                      <td className="w140 mut">{invitation.role}</td>
                      <td className="w280 dim">
                        {`by ${nameOf(invitation.invited_by)}, ends `}
                        <Ago time={invitation.expires_at} />
                      </td>
                      <td className="w120">
                        <button type="button" className="btn sm dan" onClick={() => setLeaving(invitation)}>
                          Withdraw…
                        </button>
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
            {leaving && (
              <ConfirmDialog
                title="Withdraw the invitation?"
                action="Withdraw"
                run={async () => {
                  const params = { teamUid: team.uid, invitationId: leaving.id };
                  await client.deleteTeamInvitation({ params });
                  await queries.invalidateQueries({ queryKey: key });
                }}
                close={() => setLeaving(undefined)}
              >
                {`Its key stops working at once${leaving.note === undefined ? '' : `: ${visibleText(leaving.note)}`}.`}
              </ConfirmDialog>
            )}
          </>
        )
      }
    </Loaded>
  );
}
