import { visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { type FormEvent, type ReactNode, useEffect, useRef, useState } from 'react';
import { rememberSession, signInFragment } from '../../api/own-sign-in.ts';
import { failureOf } from '../../api/problem.ts';
import { clientOf } from '../../api/session.ts';
import { useTitle } from '../../frame/page.tsx';
import { oneOf } from '../../frame/search.ts';
import { switchTheme } from '../../frame/theme.ts';
import { CommandBlock } from '../../parts/copy.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Problem } from '../../parts/problem.tsx';
import { answerOfProvider, ProviderButtons, useProviders } from './providers.tsx';

/** Returns the address to open after the sign-in. Accepts only addresses of this origin. */
function nextOf(text: string | undefined): string {
  const url = URL.parse(text ?? '/runs', location.origin);
  return url?.origin === location.origin && !url.pathname.startsWith('//')
    ? url.pathname + url.search + url.hash
    : '/runs';
}

type Way = 'key' | 'invitation';

/** The code of a one-time link, and the person whom it signs in. */
interface SignInLink {
  readonly code: string;
  readonly owner: { readonly display_name: string; readonly team_name: string };
}

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
  const isKey = way === 'key';
  const field = useRef<HTMLInputElement>(null);
  const name = useRef<HTMLInputElement>(null);
  const providers = useProviders();
  const [answerError, setAnswerError] = useState<unknown>();
  /** The query that an identity provider added to the address when it sent the browser to this page. */
  const [answer, setAnswer] = useState<string | undefined>();

  const signIn = async (
    body: { code: string } | { api_key: string } | { sign_on: string },
    onFailure: (failure: unknown) => void = setError,
  ) => {
    setBusy(true);
    onFailure(undefined);
    try {
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
    const invitation = isKey ? '' : (field.current?.value.trim() ?? '');
    if (!isKey && invitation === '') return field.current?.focus();
    setBusy(true);
    setAnswerError(undefined);
    setAnswer(undefined);
    try {
      const body = { provider, next, ...(isKey ? {} : { invitation }) };
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

  // biome-ignore lint/correctness/useExhaustiveDependencies: a code works once, so the page sends it once
  useEffect(() => {
    const sent = answerOfProvider(location.search.slice(1));
    if (sent !== undefined) {
      history.replaceState(null, '', location.pathname);
      setAnswer(sent);
      return finishSignOn(sent);
    }
    const text = location.hash.slice(1);
    if (!text.startsWith(signInFragment)) return;
    history.replaceState(null, '', location.pathname + location.search);
    void takeCode(text.slice(signInFragment.length));
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
      verb={isKey ? 'Continue' : 'Join'}
      isBusy={isBusy}
      begin={(id) => void beginSignOn(id)}
    />
  );
  if (firstKey !== undefined)
    return (
      <FirstKey value={firstKey} isBusy={isBusy} error={error} signIn={() => void signIn({ api_key: firstKey })} />
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
    <div className="lone">
      <main className="lone-b" id="main">
        <div className="row">
          <span className="mark" aria-hidden="true">
            R
          </span>
          <span className="b">Runyard</span>
          <span className="dim right mono small">{location.host}</span>
        </div>
        <div className="stack s1">
          <h1>{isKey ? 'Sign in' : 'Accept an invitation'}</h1>
          {isBusy && answer !== undefined && <p role="status">Signing you in…</p>}
          {next !== '/runs' && (
            <p className="mut">
              You are taken to <code>{next}</code> afterwards.
            </p>
          )}
        </div>
        <Problem error={answerError} {...(answer === undefined ? {} : { onRetry: () => finishSignOn(answer) })} />
        {isKey && buttons}
        {providers !== undefined && (
          <OtherWays areHidden={isKey && hasProviders}>
            {isKey && (
              <>
                <div className="stack s2">
                  <p className="lab">With a one-time link</p>
                  <p className="mut">Run this where you use the command line. It opens this browser, signed in.</p>
                  <CommandBlock command="bin/runyard open" />
                </div>
                <div className="or">or</div>
              </>
            )}
            <form className="stack" onSubmit={submit}>
              <div className="field">
                <label htmlFor="credential">{isKey ? 'API key' : 'Key of the invitation'}</label>
                <input
                  key={way}
                  ref={field}
                  className="in mono"
                  id="credential"
                  type="password"
                  autoComplete="current-password"
                  spellCheck={false}
                  required
                  aria-invalid={error !== undefined}
                  aria-describedby="credential-hint credential-problem"
                />
                {error !== undefined && (
                  <p className="small badc row top" id="credential-problem" role="alert">
                    <Icon name="warn" small />
                    {failureOf(error).detail}
                  </p>
                )}
                <span className="hint" id="credential-hint">
                  It is exchanged for a session of 8 hours, and not kept in this browser.
                </span>
              </div>
              {!isKey && (
                <>
                  {buttons}
                  {hasProviders && <div className="or">or without an account there</div>}
                  <div className="field">
                    <label htmlFor="name">Your name</label>
                    <input ref={name} className="in" id="name" autoComplete="name" required maxLength={200} />
                  </div>
                </>
              )}
              <button className={hasProviders ? 'btn' : 'btn pri'} type="submit" disabled={isBusy}>
                {isKey ? 'Sign in' : 'Join the team'}
              </button>
            </form>
          </OtherWays>
        )}
        <p className="mut">
          {isKey ? 'Invited? ' : hasProviders ? 'In a team already? ' : 'Have an API key? '}
          <button
            type="button"
            className="btn ghost sm link"
            onClick={() => {
              setWay(isKey ? 'invitation' : 'key');
              setError(undefined);
              setAnswerError(undefined);
            }}
          >
            {isKey ? 'Accept an invitation with its key' : hasProviders ? 'Sign in' : 'Sign in with it'}
          </button>
        </p>
      </main>
      <footer className="row wrap pad small dim">
        <a href="/docs">API reference</a>
        <span className="right row">
          <button
            type="button"
            className="btn ghost sm icon"
            aria-label="Switch between light and dark"
            onClick={switchTheme}
          >
            <Icon name="moon" small />
          </button>
        </span>
      </footer>
    </div>
  );
}

/** Asks whether the person wants to sign in with a one-time link, which a stranger may have sent. */
function LinkQuestion({
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
    <div className="lone">
      <main className="lone-b" id="main">
        <h1>Sign in as {name}?</h1>
        <p className="mut">
          The link signs this browser in as <b>{name}</b> of the team <b>{visibleText(owner.team_name)}</b>. Continue
          only if you made the link.
        </p>
        {error !== undefined && (
          <p className="small badc" role="alert">
            {failureOf(error).detail}
          </p>
        )}
        <button type="button" className="btn pri" disabled={isBusy} onClick={signIn}>
          Sign in as {name}
        </button>
        <button type="button" className="btn ghost" disabled={isBusy} onClick={cancel}>
          Cancel
        </button>
      </main>
    </div>
  );
}

/** Shows the other ways to sign in. They are folded if single sign-on is configured, because most people then do not need them. */
function OtherWays({ areHidden, children }: { areHidden: boolean; children: ReactNode }) {
  if (!areHidden) return children;
  return (
    <details className="stack">
      <summary className="mut">With a link or an API key</summary>
      <div className="stack">{children}</div>
    </details>
  );
}

/** Shows the first API key of a new person, which the service returns only once, and then signs the browser in. */
function FirstKey({
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
    <div className="lone">
      <main className="lone-b" id="main">
        <h1>You are in the team</h1>
        <p className="mut">
          This is your API key, for the command line and for later sign-ins. It is shown this once: store it now.
        </p>
        <CommandBlock command={value} what="Copy key" />
        {error !== undefined && (
          <p className="small badc" role="alert">
            {failureOf(error).detail}
          </p>
        )}
        <button type="button" className="btn pri" disabled={isBusy} onClick={signIn}>
          I stored it. Open Runyard
        </button>
      </main>
    </div>
  );
}
