import type { InvitationOffer } from '@runyard/contract/team/teams';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type FormEvent, type ReactNode, useRef } from 'react';
import { failureOf } from '../../api/problem.ts';
import { clientOf } from '../../api/session.ts';
import { useAttempts } from '../../parts/attempt.ts';
import { Hint, P, Stack } from '../../parts/blocks.tsx';
import { Button, FieldGroup, Input } from '../../parts/controls.tsx';
import { Ago } from '../../parts/time.tsx';
import { LonePage } from './questions.tsx';
import styles from './sign-in.module.css';

/** The link of an invitation, and what it offers. `person`: the person who is signed in already. */
export interface InvitationLink {
  readonly key: string;
  readonly offer: InvitationOffer;
  readonly person?: { readonly name: string; readonly csrfToken: string };
}

/** Reads what the link of an invitation offers, and who is signed in. Throws the error of the service if the link does not work. */
export async function readInvitationLink(key: string): Promise<InvitationLink> {
  const client = clientOf('');
  const offer = await client.readTeamInvitation({ body: { key } });
  const session = await client.getSession().catch(() => undefined);
  if (session?.csrf_token === undefined) return { key, offer };
  const { user, csrf_token: csrfToken } = session;
  return { key, offer, person: { name: user.display_name ?? user.uid, csrfToken } };
}

/** Shows what the link of an invitation offers, and asks whether to join. `providers`: buttons of identity providers. */
export function InvitationQuestion({
  link: { key, offer, person },
  providers,
  isBusy,
  error,
  joinAsNew,
  joinWithPasskey,
}: {
  link: InvitationLink;
  providers: ReactNode;
  isBusy: boolean;
  error: unknown;
  /** Creates a person with an API key, which the page shows once. */
  joinAsNew: (name: string) => void;
  /** Creates a person with a passkey. Absent: this browser has no passkeys. */
  joinWithPasskey: ((name: string) => void) | undefined;
}) {
  const name = useRef<HTMLInputElement>(null);
  const queries = useQueryClient();
  const navigate = useNavigate();
  const { error: ownError, isBusy: isJoining, attempt } = useAttempts();
  /** Adds the person who is signed in to the team of the invitation. */
  const joinAs = ({ csrfToken }: NonNullable<InvitationLink['person']>) =>
    attempt(async () => {
      const team = await clientOf(csrfToken).joinTeam({ body: { key } });
      await queries.resetQueries();
      await navigate({ to: '/runs', search: { team: team.uid }, replace: true });
    });
  const shownError = error ?? ownError;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    (joinWithPasskey ?? joinAsNew)(name.current?.value.trim() ?? '');
  };
  const joinWithKey = () => {
    if (name.current?.reportValidity()) joinAsNew(name.current.value.trim());
  };
  return (
    <LonePage>
      <h1>{`Join ${visibleText(offer.team_name)}?`}</h1>
      <P tone="muted">
        <b>{visibleText(offer.invited_by)}</b> invites you as <b>{offer.role}</b>. One person can use the link. It ends{' '}
        <Ago time={offer.expires_at} />.
      </P>
      {shownError !== undefined && (
        <P tone="bad" small role="alert">
          {failureOf(shownError).detail}
        </P>
      )}
      {person ? (
        <>
          <Button kind="primary" disabled={isJoining} onClick={() => void joinAs(person)}>
            {`Join as ${visibleText(person.name)}`}
          </Button>
          <Hint>You are signed in as this person. To join as somebody else, sign out and open the link again.</Hint>
        </>
      ) : (
        <Stack as="form" onSubmit={submit}>
          {providers}
          {providers && <div className={styles.or}>or without an account there</div>}
          <FieldGroup>
            <label htmlFor="name">Your name</label>
            <Input ref={name} id="name" autoComplete="name" required maxLength={200} />
          </FieldGroup>
          <Button kind={providers ? undefined : 'primary'} type="submit" disabled={isBusy}>
            {joinWithPasskey ? 'Join with a passkey' : 'Join the team'}
          </Button>
          {joinWithPasskey && (
            <>
              <Hint>A passkey signs you in with a fingerprint, a face or a PIN of your device.</Hint>
              <Button kind="ghost" small link disabled={isBusy} onClick={joinWithKey}>
                Join with an API key instead
              </Button>
            </>
          )}
        </Stack>
      )}
    </LonePage>
  );
}
