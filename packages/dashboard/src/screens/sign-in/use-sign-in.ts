/** Signs a browser in: with a proof of the person, with an invitation, or at an identity provider. */
import type { CreateBrowserSessionRequest } from '@runyard/contract/team/browser-sessions';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { invitationFragment, rememberSession, signInFragment } from '../../api/own-sign-in.ts';
import { clientOf } from '../../api/session.ts';
import { type InvitationLink, readInvitationLink } from './invitation-question.tsx';
import { answerOfProvider } from './providers.tsx';
import type { SignInLink } from './questions.tsx';

/** Returns the address to open after the sign-in. Accepts only addresses of this origin. */
export function nextOf(text: string | undefined): string {
  const url = URL.parse(text ?? '/runs', location.origin);
  return url?.origin === location.origin && !url.pathname.startsWith('//')
    ? url.pathname + url.search + url.hash
    : '/runs';
}

export type SignIn = ReturnType<typeof useSignIn>;

/** Returns the state of the sign-in, and the functions that continue it. `next`: address to open afterwards. */
export function useSignIn(next: string) {
  const navigate = useNavigate();
  const queries = useQueryClient();
  const [error, setError] = useState<unknown>();
  const [answerError, setAnswerError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const [firstKey, setFirstKey] = useState<string | undefined>();
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

  /** Opens the page of the identity provider, which sends the browser back to this page. */
  const beginSignOn = async (provider: string, invitation: string | undefined) => {
    setBusy(true);
    setAnswerError(undefined);
    setAnswer(undefined);
    try {
      const body = { provider, next, ...(invitation === undefined ? {} : { invitation }) };
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
  const finishSignOn = (sent: string) => {
    setAnswer(sent);
    void signIn({ sign_on: sent }, setAnswerError);
  };

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
  const clearErrors = () => {
    setError(undefined);
    setAnswerError(undefined);
  };
  return {
    ...{ error, setError, answerError, setAnswerError, clearErrors, isBusy, firstKey, answer },
    ...{ signIn, beginSignOn, finishSignOn, join },
  };
}

/**
 * Takes from the address of the page what brought the person to it: an answer of an identity provider, the code of a one-time link, or an
 * invitation. `onBadInvitation` is called if the invitation of a link cannot be read.
 */
export function useArrival(next: string, { setError, finishSignOn }: SignIn, onBadInvitation: () => void) {
  const navigate = useNavigate();
  const [link, setLink] = useState<SignInLink | undefined>();
  const [invited, setInvited] = useState<InvitationLink | undefined>();

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

  /** Shows what the link of an invitation offers. The link may be from a stranger, so nobody joins without a question. */
  const takeInvitation = async (key: string) => {
    try {
      setInvited(await readInvitationLink(key));
    } catch (failure) {
      onBadInvitation();
      setError(failure);
    }
  };

  // biome-ignore lint/correctness/useExhaustiveDependencies: a code works once, so the page sends it once
  useEffect(() => {
    const sent = answerOfProvider(location.search.slice(1));
    if (sent !== undefined) {
      history.replaceState(null, '', location.pathname);
      return finishSignOn(sent);
    }
    const text = location.hash.slice(1);
    if (text.startsWith(signInFragment) || text.startsWith(invitationFragment))
      history.replaceState(null, '', location.pathname + location.search);
    if (text.startsWith(signInFragment)) void takeCode(text.slice(signInFragment.length));
    if (text.startsWith(invitationFragment)) void takeInvitation(text.slice(invitationFragment.length));
  }, []);
  return { link, dropLink: () => setLink(undefined), invited };
}
