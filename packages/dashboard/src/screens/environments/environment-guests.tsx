import type { EnvironmentInvitation } from '@runyard/contract/environments/environment-guests';
import type { Environment } from '@runyard/contract/environments/environments';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useRead } from '../../api/read.ts';
import { useClient } from '../../api/session.ts';
import { useAttempts } from '../../parts/attempt.ts';
import { P, Row, Stack, Text } from '../../parts/blocks.tsx';
import { Button } from '../../parts/controls.tsx';
import { CommandBlock, CopyButton } from '../../parts/copy.tsx';
import { TextField } from '../../parts/form.tsx';
import { FormDialog } from '../../parts/form-dialog.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { nameOf, Person } from '../../parts/person.tsx';
import { Problem } from '../../parts/problem.tsx';
import { useQuestion } from '../../parts/question.tsx';
import { Cell, Table } from '../../parts/table.tsx';
import { Ago } from '../../parts/time.tsx';

/** People of other teams who may use the environment. Only administrators can see and change them. */
export function EnvironmentGuests({ environment }: { environment: Environment }) {
  const client = useClient();
  const queries = useQueryClient();
  const { uid, is_link_shared: isShared = false } = environment;
  const params = { uid };
  const key = ['environment', uid, 'guests'];
  const guests = useRead(key, (client) => client.listEnvironmentGuests({ params }));
  const [isInviting, setInviting] = useState(false);
  const { ask, dialog } = useQuestion();
  const { error, attempt } = useAttempts();
  const refresh = async () => await queries.invalidateQueries({ queryKey: ['environment', uid] });
  const share = async () => {
    await attempt(async () => {
      await client.shareEnvironment({ params });
      await refresh();
    });
  };
  const askToUnshare = () =>
    ask({
      title: 'End the sharing by link?',
      text: 'People who came by the link lose access to the environment at once. Guests keep it.',
      action: 'End sharing',
      run: async () => {
        await client.unshareEnvironment({ params });
        await refresh();
      },
    });
  return (
    <Stack as="section" gap={2} aria-label="Guests">
      <Row>
        <Text as="div" grow>
          <h2>Guests of other teams</h2>
          <P tone="muted">They start runs of their own team in it, with none of its secrets, and change nothing.</P>
        </Text>
        <Button onClick={() => (isShared ? askToUnshare() : void share())}>
          {isShared ? 'End sharing…' : 'Share by link'}
        </Button>
        <Button onClick={() => setInviting(true)}>Invite…</Button>
      </Row>
      <Problem error={error} />
      {isShared && (
        <>
          <P tone="muted">Every person with this link may use it, with a personal key:</P>
          <CommandBlock command={`${location.origin}/environments/${uid}`} what="Copy link" />
        </>
      )}
      <Loaded query={guests} rows={1}>
        {({ guests: list, invitations }) =>
          list.length + invitations.length === 0 ? (
            <P tone="dim">None.</P>
          ) : (
            <Table aria-label="Guests and invitations">
              {list.map(({ user, granted_at: granted }) => (
                <tr key={user.uid}>
                  <td>
                    <Person profile={user} />
                  </td>
                  <Cell tone="muted" style={{ width: 200 }}>
                    guest since <Ago time={granted} />
                  </Cell>
                  <Cell style={{ width: 140 }}>
                    <Button
                      kind="danger"
                      small
                      aria-label={`Remove ${nameOf(user)}`}
                      onClick={() =>
                        ask({
                          title: `Remove ${nameOf(user)}?`,
                          text: 'Runs that the guest started and that are not set up yet fail with resource_not_found.',
                          action: 'Remove',
                          run: async () => {
                            await client.removeEnvironmentGuest({ params: { uid, userUid: user.uid } });
                            await refresh();
                          },
                        })
                      }
                    >
                      Remove…
                    </Button>
                  </Cell>
                </tr>
              ))}
              {invitations.map((invitation) => (
                <tr key={invitation.id}>
                  <td>{addressOf(invitation)}</td>
                  <Cell tone="dim" style={{ width: 200 }}>
                    invited, ends <Ago time={invitation.expires_at} />
                  </Cell>
                  <Cell style={{ width: 140 }}>
                    <Row as="span">
                      <CopyButton text={invitation.id} what="Copy the id of the invitation" />
                      <Button
                        kind="danger"
                        small
                        aria-label={`Withdraw the invitation of ${addressOf(invitation)}`}
                        onClick={() =>
                          ask({
                            title: `Withdraw the invitation of ${addressOf(invitation)}?`,
                            text: 'It can no longer be accepted.',
                            action: 'Withdraw',
                            run: async () => {
                              const guestInvitationId = invitation.id;
                              await client.withdrawEnvironmentInvitation({ params: { uid, guestInvitationId } });
                              await refresh();
                            },
                          })
                        }
                      >
                        Withdraw…
                      </Button>
                    </Row>
                  </Cell>
                </tr>
              ))}
            </Table>
          )
        }
      </Loaded>
      {isInviting && (
        <FormDialog
          title="Invite a guest"
          action="Invite"
          close={() => setInviting(false)}
          send={async (data, headers) => {
            const text = String(data.get('email')).trim();
            await client.inviteEnvironmentGuest({
              params,
              body: text.includes('@') ? { email: text } : { user_uid: text },
              headers: { ...headers },
            });
            await refresh();
          }}
        >
          <TextField
            label="Address, or UID of the person"
            path="email"
            required
            hint="If you invite an address, the person also needs the id of the invitation: copy it from the list and send it to the address"
          />
        </FormDialog>
      )}
      {dialog}
    </Stack>
  );
}

const addressOf = ({ email, user_uid: uid }: EnvironmentInvitation): string => visibleText(email ?? uid ?? '');
