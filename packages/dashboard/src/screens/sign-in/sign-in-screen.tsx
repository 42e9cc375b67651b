import { useSearch } from '@tanstack/react-router';
import { type ReactNode, useRef, useState } from 'react';
import { canMakePasskeys, hasPasskeys, joinWithPasskey, proveByPasskey } from '../../api/passkeys.ts';
import { useTitle } from '../../frame/page.tsx';
import { oneOf } from '../../frame/search.ts';
import { switchTheme } from '../../frame/theme.ts';
import { Hint, Mark, P, Row, Stack, Text } from '../../parts/blocks.tsx';
import { Button } from '../../parts/controls.tsx';
import { Problem } from '../../parts/problem.tsx';
import { CredentialForm, OneTimeLink, type Way } from './credential-form.tsx';
import { InvitationQuestion } from './invitation-question.tsx';
import { ProviderButtons, useProviders } from './providers.tsx';
import { FirstKey, LinkQuestion, LonePage, OtherWays } from './questions.tsx';
import { nextOf, type SignIn, useArrival, useSignIn } from './use-sign-in.ts';

/** The screen on which a person signs in: with an identity provider, the code of a one-time link, an API key, or an invitation. */
export function SignInScreen() {
  useTitle('Sign in');
  const next = nextOf(oneOf(useSearch({ strict: false, select: (search) => search.next })));
  const [way, setWay] = useState<Way>('key');
  const providers = useProviders();
  const state = useSignIn(next);
  const { link, dropLink, invited } = useArrival(next, state, () => setWay('invitation'));
  const { firstKey, isBusy, error, answerError, signIn, join } = state;
  /** Returns the buttons of the identity providers; undefined if there are none. */
  const buttons = (verb: string, begin: (provider: string) => void) =>
    providers && providers.length > 0 ? <ProviderButtons {...{ providers, verb, isBusy, begin }} /> : undefined;
  if (firstKey !== undefined)
    return (
      <FirstKey value={firstKey} isBusy={isBusy} error={error} signIn={() => void signIn({ api_key: firstKey })} />
    );
  if (invited !== undefined)
    return (
      <InvitationQuestion
        link={invited}
        providers={buttons('Join', (id) => void state.beginSignOn(id, invited.key))}
        isBusy={isBusy}
        error={error ?? answerError}
        joinAsNew={(displayName) => void join(invited.key, displayName)}
        joinWithPasskey={
          canMakePasskeys() ? (displayName) => void signIn(() => joinWithPasskey(invited.key, displayName)) : undefined
        }
      />
    );
  if (link !== undefined)
    return (
      <LinkQuestion
        link={link}
        isBusy={isBusy}
        error={error}
        signIn={() => void signIn({ code: link.code })}
        cancel={dropLink}
      />
    );
  return (
    <WaysToSignIn
      way={way}
      setWay={setWay}
      next={next}
      state={state}
      buttons={buttons}
      areProvidersKnown={providers !== undefined}
    />
  );
}

function WaysToSignIn({
  way,
  setWay,
  next,
  state: { error, answerError, isBusy, answer, ...state },
  buttons,
  areProvidersKnown,
}: {
  way: Way;
  setWay: (way: Way) => void;
  next: string;
  state: SignIn;
  /** Returns the buttons of the identity providers; undefined if there are none. */
  buttons: (verb: string, begin: (provider: string) => void) => ReactNode;
  areProvidersKnown: boolean;
}) {
  const field = useRef<HTMLInputElement>(null);
  const isKey = way === 'key';
  const shownButtons = buttons(isKey ? 'Continue' : 'Join', (provider) => {
    const invitation = isKey ? undefined : field.current?.value.trim();
    if (invitation === '') field.current?.focus();
    else void state.beginSignOn(provider, invitation);
  });
  return (
    <LonePage footer={<Foot />}>
      <Row>
        <Mark>R</Mark>
        <Text bold>Runyard</Text>
        <Hint right mono>
          {location.host}
        </Hint>
      </Row>
      <Stack gap={1}>
        <h1>{isKey ? 'Sign in' : 'Accept an invitation'}</h1>
        {isBusy && answer !== undefined && <p role="status">Signing you in…</p>}
        {next !== '/runs' && (
          <P tone="muted">
            You are taken to <code>{next}</code> afterwards.
          </P>
        )}
      </Stack>
      <Problem error={answerError} {...(answer === undefined ? {} : { onRetry: () => state.finishSignOn(answer) })} />
      {isKey && shownButtons}
      {isKey && hasPasskeys() && (
        <Button icon="key" disabled={isBusy} onClick={() => void state.signIn(proveByPasskey, state.setAnswerError)}>
          Sign in with a passkey
        </Button>
      )}
      {areProvidersKnown && (
        <OtherWays areHidden={isKey && shownButtons !== undefined}>
          {isKey && <OneTimeLink />}
          <CredentialForm
            way={way}
            field={field}
            error={error}
            isBusy={isBusy}
            providers={shownButtons}
            signIn={(key) => void state.signIn({ api_key: key })}
            join={(key, displayName) => void state.join(key, displayName)}
          />
        </OtherWays>
      )}
      <OtherWay
        isKey={isKey}
        hasProviders={shownButtons !== undefined}
        choose={() => {
          setWay(isKey ? 'invitation' : 'key');
          state.clearErrors();
        }}
      />
    </LonePage>
  );
}

/** Offers the other credential: the key of an invitation instead of an API key, or the reverse. */
const OtherWay = ({ isKey, hasProviders, choose }: { isKey: boolean; hasProviders: boolean; choose: () => void }) => (
  <P tone="muted">
    {isKey ? 'Invited? ' : hasProviders ? 'In a team already? ' : 'Have an API key? '}
    <Button kind="ghost" small link onClick={choose}>
      {isKey ? 'Accept an invitation with its key' : hasProviders ? 'Sign in' : 'Sign in with it'}
    </Button>
  </P>
);

const Foot = () => (
  <Row as="footer" tone="dim" wrap pad small>
    <a href="/docs">API reference</a>
    <Row as="span" right>
      <Button kind="ghost" small icon="moon" aria-label="Switch between light and dark" onClick={switchTheme} />
    </Row>
  </Row>
);
