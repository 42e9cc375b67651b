import { type FormEvent, type ReactNode, type RefObject, useRef } from 'react';
import { failureOf } from '../../api/problem.ts';
import { Hint, P, Row, Stack } from '../../parts/blocks.tsx';
import { Button, FieldGroup, Input } from '../../parts/controls.tsx';
import { CommandBlock } from '../../parts/copy.tsx';
import { Icon } from '../../parts/icon.tsx';
import styles from './sign-in.module.css';

/** The credential that a person types: an API key, or the key of an invitation. */
export type Way = 'key' | 'invitation';

/** Shows the command that makes a one-time link. */
export const OneTimeLink = () => (
  <>
    <Stack gap={2}>
      <P medium>With a one-time link</P>
      <P tone="muted">Run this where you use the command line. It opens this browser, signed in.</P>
      <CommandBlock command="bin/runyard open" />
    </Stack>
    <div className={styles.or}>or</div>
  </>
);

/** The form for an API key, or for the key of an invitation with the name of the new person. */
export function CredentialForm({
  way,
  field,
  error,
  isBusy,
  providers,
  signIn,
  join,
}: {
  way: Way;
  /** The input of the credential. */
  field: RefObject<HTMLInputElement | null>;
  error: unknown;
  isBusy: boolean;
  /** Buttons of identity providers; false if there are none. */
  providers: ReactNode;
  signIn: (key: string) => void;
  join: (key: string, displayName: string) => void;
}) {
  const name = useRef<HTMLInputElement>(null);
  const isKey = way === 'key';
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const value = field.current?.value.trim() ?? '';
    if (value === '') return;
    if (isKey) signIn(value);
    else join(value, name.current?.value.trim() ?? '');
  };
  return (
    <Stack as="form" onSubmit={submit}>
      <FieldGroup>
        <label htmlFor="credential">{isKey ? 'API key' : 'Key of the invitation'}</label>
        <Input
          key={way}
          ref={field}
          mono
          id="credential"
          type="password"
          autoComplete="current-password"
          spellCheck={false}
          required
          aria-invalid={error !== undefined}
          aria-describedby="credential-hint credential-problem"
        />
        {error !== undefined && (
          <Row as="p" tone="bad" small top id="credential-problem" role="alert">
            <Icon name="warn" small />
            {failureOf(error).detail}
          </Row>
        )}
        <Hint id="credential-hint">It is exchanged for a session of 8 hours, and not kept in this browser.</Hint>
      </FieldGroup>
      {!isKey && (
        <>
          {providers}
          {providers && <div className={styles.or}>or without an account there</div>}
          <FieldGroup>
            <label htmlFor="name">Your name</label>
            <Input ref={name} id="name" autoComplete="name" required maxLength={200} />
          </FieldGroup>
        </>
      )}
      <Button kind={providers ? undefined : 'primary'} type="submit" disabled={isBusy}>
        {isKey ? 'Sign in' : 'Join the team'}
      </Button>
    </Stack>
  );
}
