import { visibleText } from '@runyard/contract/wire/visible';
import type { ReactNode } from 'react';
import { failureOf } from '../../api/problem.ts';
import { P, Stack, Text } from '../../parts/blocks.tsx';
import { Button } from '../../parts/controls.tsx';
import { CommandBlock } from '../../parts/copy.tsx';
import styles from './sign-in.module.css';

/** The code of a one-time link, and the person whom it signs in. */
export interface SignInLink {
  readonly code: string;
  readonly owner: { readonly display_name: string; readonly team_name: string };
}

/** A page without the navigation: a narrow column in the middle, and `footer` at the bottom. */
export const LonePage = ({ children, footer }: { children: ReactNode; footer?: ReactNode }) => (
  <div className={styles.page}>
    <main className={styles.body} id="main">
      {children}
    </main>
    {footer}
  </div>
);

/** Asks whether the person wants to sign in with a one-time link, which a stranger may have sent. */
export function LinkQuestion({
  link: { owner },
  isBusy,
  error,
  signIn,
  cancel,
}: {
  link: SignInLink;
  isBusy: boolean;
  error: unknown;
  signIn: () => void;
  cancel: () => void;
}) {
  const name = visibleText(owner.display_name);
  return (
    <LonePage>
      <h1>Sign in as {name}?</h1>
      <P tone="muted">
        The link signs this browser in as <b>{name}</b> of the team <b>{visibleText(owner.team_name)}</b>. Continue only
        if you made the link.
      </P>
      {error !== undefined && (
        <P tone="bad" small role="alert">
          {failureOf(error).detail}
        </P>
      )}
      <Button kind="primary" disabled={isBusy} onClick={signIn}>
        Sign in as {name}
      </Button>
      <Button kind="ghost" disabled={isBusy} onClick={cancel}>
        Cancel
      </Button>
    </LonePage>
  );
}

/** Shows the other ways to sign in. They are folded if single sign-on is configured, because most people then do not need them. */
export function OtherWays({ areHidden, children }: { areHidden: boolean; children: ReactNode }) {
  if (!areHidden) return children;
  return (
    <Stack as="details">
      <Text as="summary" tone="muted">
        With a link or an API key
      </Text>
      <Stack>{children}</Stack>
    </Stack>
  );
}

/** Shows the first API key of a new person, which the service returns only once, and then signs the browser in. */
export function FirstKey({
  value,
  isBusy,
  error,
  signIn,
}: {
  value: string;
  isBusy: boolean;
  error: unknown;
  signIn: () => void;
}) {
  return (
    <LonePage>
      <h1>You are in the team</h1>
      <P tone="muted">
        This is your API key, for the command line and for later sign-ins. It is shown this once: store it now.
      </P>
      <CommandBlock command={value} what="Copy key" />
      {error !== undefined && (
        <P tone="bad" small role="alert">
          {failureOf(error).detail}
        </P>
      )}
      <Button kind="primary" disabled={isBusy} onClick={signIn}>
        I stored it. Open Runyard
      </Button>
    </LonePage>
  );
}
