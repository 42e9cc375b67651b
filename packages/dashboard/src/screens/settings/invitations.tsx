import { visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { useRead } from '../../api/read.ts';
import { useClient, useSession } from '../../api/session.ts';
import { Text } from '../../parts/blocks.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { nameOf } from '../../parts/person.tsx';
import { AskButton } from '../../parts/question.tsx';
import { Cell, Table } from '../../parts/table.tsx';
import { Ago } from '../../parts/time.tsx';

/** Shows the invitations that nobody has used yet. */
export function Invitations() {
  const client = useClient();
  const queries = useQueryClient();
  const { team } = useSession();
  const key = ['invitations', team.uid];
  const invitations = useRead(
    key,
    async (client) => (await client.listTeamInvitations({ params: { teamUid: team.uid } })).invitations,
  );
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
                    <AskButton
                      needs="admin"
                      kind="danger"
                      small
                      question={{
                        title: 'Withdraw the invitation?',
                        text: `Its key stops working at once${invitation.note === undefined ? '' : `: ${visibleText(invitation.note)}`}.`,
                        action: 'Withdraw',
                        run: async () => {
                          const params = { teamUid: team.uid, invitationId: invitation.id };
                          await client.deleteTeamInvitation({ params });
                          await queries.invalidateQueries({ queryKey: key });
                        },
                      }}
                    >
                      Withdraw…
                    </AskButton>
                  </Cell>
                </tr>
              ))}
            </Table>
          </>
        )
      }
    </Loaded>
  );
}
