import type { CreateBrowserSessionRequest } from '@runyard/contract/team/browser-sessions';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { type FormEvent, useEffect, useRef, useState } from 'react';
import { invitationFragment, rememberSession, signInFragment } from '../../api/own-sign-in.ts';
import { canMakePasskeys, hasPasskeys, joinWithPasskey, proveByPasskey } from '../../api/passkeys.ts';
import { failureOf } from '../../api/problem.ts';
import { clientOf } from '../../api/session.ts';
import { useTitle } from '../../frame/page.tsx';
import { oneOf } from '../../frame/search.ts';
import { switchTheme } from '../../frame/theme.ts';
import { Hint, Mark, P, Row, Stack, Text } from '../../parts/blocks.tsx';
import { Button, FieldGroup, Input } from '../../parts/controls.tsx';
import { CommandBlock } from '../../parts/copy.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Problem } from '../../parts/problem.tsx';
import { type InvitationLink, InvitationQuestion, readInvitationLink } from './invitation-question.tsx';
import { answerOfProvider, ProviderButtons, useProviders } from './providers.tsx';
import { FirstKey, LinkQuestion, LonePage, OtherWays, type SignInLink } from './questions.tsx';
import styles from './sign-in.module.css';

/** Returns the address to open after the sign-in. Accepts only addresses of this origin. */
function nextOf(text: string | undefined): string {
  const url = URL.parse(text ?? '/runs', location.origin);
  return url?.origin === location.origin && !url.pathname.startsWith('//')
    ? url.pathname + url.search + url.hash
    : '/runs';
}

type Way = 'key' | 'invitation';

/** The screen on which a person signs in: with an identity provider, the code of a one-time link, an API key, or an invitation. */
export function SignInScreen() {
  useTitle('Sign in');
  const navigate = useNavigate();
  const queries = useQueryClient();
  const next = nextOf(oneOf(useSearch({ strict: false, select: (search) => search.next })));
  const [way, setWay] = useState<Way>('key');
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const [firstKey, setFirstKey] = useState<string | undefined>();
  const [link, setLink] = useState<SignInLink | undefined>();
  const [invited, setInvited] = useState<InvitationLink | undefined>();
  const isKey = way === 'key';
  const field = useRef<HTMLInputElement>(null);
  const name = useRef<HTMLInputElement>(null);
  const providers = useProviders();
  const [answerError, setAnswerError] = useState<unknown>();
  /** The query that an identity provider added to the address when it sent the browser to this page. */
  const [answer, setAnswer] = useState<string | undefined>();

  const signIn = async (
    proof: CreateBrowserSessionRequest | (() => Promise<CreateBrowserSessionRequest>),
    onFailure: (failure: unknown) => void = setError,
  ) => {
    setBusy(true);
    onFailure(undefined);
    try {
      const body = typeof proof === 'function' ? await proof() : proof;
      const session = await clientOf('').createBrowserSession({ body });
      rememberSession(session.uid);
      await queries.resetQueries();
      await navigate({ href: session.next === undefined ? next : nextOf(session.next), replace: true });
    } catch (failure) {
      onFailure(failure);
      setBusy(false);
    }
  };

  /**
   * Asks whether to sign in with the code of a one-time link. If a person is already signed in, does nothing. The link may be from a
   * stranger who wants the person to work in the stranger's account, so the page shows first whom it signs in.
   */
  const takeCode = async (code: string) => {
    const isSignedIn = await clientOf('')
      .getSession()
      .then(
        () => true,
        () => false,
      );
    if (isSignedIn) return await navigate({ href: next, replace: true });
    try {
      setLink({ code, owner: await clientOf('').readSignInCode({ body: { code } }) });
    } catch (failure) {
      setError(failure);
    }
  };

  /** Opens the page of the identity provider, which sends the browser back to this page. */
  const beginSignOn = async (provider: string) => {
    const typed = isKey ? '' : (field.current?.value.trim() ?? '');
    const invitation = invited?.key ?? typed;
    if (!isKey && invitation === '') return field.current?.focus();
    setBusy(true);
    setAnswerError(undefined);
    setAnswer(undefined);
    try {
      const body = { provider, next, ...(invitation === '' ? {} : { invitation }) };
      const { url } = await clientOf('').startSignOn({ body });
      location.assign(url);
    } catch (failure) {
      setAnswerError(failure);
      setBusy(false);
    }
  };

  /**
   * Signs in with the answer of the identity provider. If the service cannot reach the provider, the page lets the person send the answer
   * again.
   */
  const finishSignOn = (sent: string) => void signIn({ sign_on: sent }, setAnswerError);

  /** Accepts an invitation. The service creates a new person, and the browser signs in with the first API key of this person. */
  const join = async (key: string, displayName: string) => {
    setBusy(true);
    setError(undefined);
    try {
      const accepted = await clientOf('').acceptTeamInvitation({ body: { key, display_name: displayName } });
      setFirstKey(accepted.key);
    } catch (failure) {
      setError(failure);
    }
    setBusy(false);
  };

  /** Shows what the link of an invitation offers. The link may be from a stranger, so nobody joins without a question. */
  const takeInvitation = async (key: string) => {
    try {
      setInvited(await readInvitationLink(key));
    } catch (failure) {
      setWay('invitation');
      setError(failure);
    }
  };

  // biome-ignore lint/correctness/useExhaustiveDependencies: a code works once, so the page sends it once
  useEffect(() => {
    const sent = answerOfProvider(location.search.slice(1));
    if (sent !== undefined) {
      history.replaceState(null, '', location.pathname);
      setAnswer(sent);
      return finishSignOn(sent);
    }
    const text = location.hash.slice(1);
    if (text.startsWith(signInFragment) || text.startsWith(invitationFragment))
      history.replaceState(null, '', location.pathname + location.search);
    if (text.startsWith(signInFragment)) void takeCode(text.slice(signInFragment.length));
    if (text.startsWith(invitationFragment)) void takeInvitation(text.slice(invitationFragment.length));
  }, []);

  const submit = (event: FormEvent) => {
    event.preventDefault();
    const value = field.current?.value.trim() ?? '';
    if (value === '') return;
    if (way === 'key') void signIn({ api_key: value });
    else void join(value, name.current?.value.trim() ?? '');
  };
  const hasProviders = providers !== undefined && providers.length > 0;
  const buttons = hasProviders && (
    <ProviderButtons
      providers={providers}
      verb={isKey && !invited ? 'Continue' : 'Join'}
      isBusy={isBusy}
      begin={(id) => void beginSignOn(id)}
    />
  );
  if (firstKey !== undefined)
    return (
      <FirstKey value={firstKey} isBusy={isBusy} error={error} signIn={() => void signIn({ api_key: firstKey })} />
    );
  if (invited !== undefined)
    return (
      <InvitationQuestion
        link={invited}
        providers={buttons}
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
        cancel={() => setLink(undefined)}
      />
    );
  return (
    <LonePage
      footer={
        <Row as="footer" tone="dim" wrap pad small>
          <a href="/docs">API reference</a>
          <Row as="span" right>
            <Button kind="ghost" small icon="moon" aria-label="Switch between light and dark" onClick={switchTheme} />
          </Row>
        </Row>
      }
    >
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
      <Problem error={answerError} {...(answer === undefined ? {} : { onRetry: () => finishSignOn(answer) })} />
      {isKey && buttons}
      {isKey && hasPasskeys() && (
        <Button icon="key" disabled={isBusy} onClick={() => void signIn(proveByPasskey, setAnswerError)}>
          Sign in with a passkey
        </Button>
      )}
      {providers !== undefined && (
        <OtherWays areHidden={isKey && hasProviders}>
          {isKey && (
            <>
              <Stack gap={2}>
                <P medium>With a one-time link</P>
                <P tone="muted">Run this where you use the command line. It opens this browser, signed in.</P>
                <CommandBlock command="bin/runyard open" />
              </Stack>
              <div className={styles.or}>or</div>
            </>
          )}
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
                {buttons}
                {hasProviders && <div className={styles.or}>or without an account there</div>}
                <FieldGroup>
                  <label htmlFor="name">Your name</label>
                  <Input ref={name} id="name" autoComplete="name" required maxLength={200} />
                </FieldGroup>
              </>
            )}
            <Button kind={hasProviders ? undefined : 'primary'} type="submit" disabled={isBusy}>
              {isKey ? 'Sign in' : 'Join the team'}
            </Button>
          </Stack>
        </OtherWays>
      )}
      <P tone="muted">
        {isKey ? 'Invited? ' : hasProviders ? 'In a team already? ' : 'Have an API key? '}
        <Button
          kind="ghost"
          small
          link
          onClick={() => {
            setWay(isKey ? 'invitation' : 'key');
            setError(undefined);
            setAnswerError(undefined);
          }}
        >
          {isKey ? 'Accept an invitation with its key' : hasProviders ? 'Sign in' : 'Sign in with it'}
        </Button>
      </P>
    </LonePage>
  );
}
