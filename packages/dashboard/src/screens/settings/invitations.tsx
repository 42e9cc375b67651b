import type { TeamInvitation } from '@runyard/contract/team/teams';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useClient, useSession } from '../../api/session.ts';
import { Text } from '../../parts/blocks.tsx';
import { Button } from '../../parts/controls.tsx';
import { ConfirmDialog } from '../../parts/dialog.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { nameOf } from '../../parts/person.tsx';
import { Cell, Table } from '../../parts/table.tsx';
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
              Invitations that wait <Text tone="dim">{list.length}</Text>
            </h2>
            <Table aria-label="Invitations that wait">
              {list.map((invitation) => (
                <tr key={invitation.id}>
                  <Cell tone={invitation.note === undefined ? 'dim' : undefined}>
                    {invitation.note === undefined ? 'without a note' : visibleText(invitation.note)}
                  </Cell>
                  <Cell tone="muted" style={{ width: 140 }}>
                    {invitation.role}
                  </Cell>
                  <Cell tone="dim" style={{ width: 280 }}>
                    {`by ${nameOf(invitation.invited_by)}, ends `}
                    <Ago time={invitation.expires_at} />
                  </Cell>
                  <Cell style={{ width: 120 }}>
                    <Button kind="danger" small onClick={() => setLeaving(invitation)}>
                      Withdraw…
                    </Button>
                  </Cell>
                </tr>
              ))}
            </Table>
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
