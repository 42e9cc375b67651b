/**
 * Proofs that people give on GitHub: that an account is theirs, and that they administer an installation. The state of a proof is encrypted
 * and names the person who began it, so nobody can let another person finish it.
 */
import { createHmac, hash, randomBytes } from 'node:crypto';
import type { GithubPurpose } from '@runyard/contract/team/github';
import type { Vault } from '../../platform/secrets/vault.ts';
import type { GithubAnswer, GithubApi, GithubAppKey, GithubHost } from '../../team/code-hosts/github-api.ts';
import type { GithubAccount } from './people.ts';

const purpose = 'github authorization';
const minutes = 15;

/** A person's authorization in progress. */
export interface Attempt {
  readonly purpose: GithubPurpose | 'create';
  readonly userUid: string;
  readonly teamId: string;
  /** UID of the App; empty with `create`, because the App does not exist yet. */
  readonly appUid: string;
  readonly installationId?: string | undefined;
  readonly factoryUid?: string | undefined;
  /** Random, from which the verifier is derived. */
  readonly secret: string;
  readonly endsAtMs: number;
}

/** Returns the attempt and its state, which GitHub sends back with the browser. */
export function beginAttempt(
  vault: Vault,
  attempt: Omit<Attempt, 'secret' | 'endsAtMs'>,
  nowMs: number,
): { readonly attempt: Attempt; readonly state: string } {
  const begun = { ...attempt, secret: randomBytes(32).toString('base64url'), endsAtMs: nowMs + minutes * 60_000 };
  return { attempt: begun, state: vault.seal(purpose, JSON.stringify(begun)).toString('base64url') };
}

/** Returns the attempt of a state; null if it is not of this service, too old, or of another person or team. */
export function readAttempt(
  vault: Vault,
  state: string,
  by: { readonly userUid: string; readonly teamId: string },
  nowMs: number,
): Attempt | null {
  try {
    const attempt = JSON.parse(vault.open(purpose, Buffer.from(state, 'base64url'))) as Attempt;
    const isOwn = attempt.userUid === by.userUid && attempt.teamId === by.teamId;
    return isOwn && attempt.endsAtMs > nowMs ? attempt : null;
  } catch {
    return null;
  }
}

/** Proof Key for Code Exchange (RFC 7636): only the service that began can exchange the code. */
const verifierOf = ({ secret }: Attempt): string => createHmac('sha256', secret).update('verifier').digest('base64url');

export function authorizationUrl(
  host: GithubHost,
  { clientId, redirectUri }: { readonly clientId: string; readonly redirectUri: string },
  { attempt, state }: ReturnType<typeof beginAttempt>,
): string {
  const query = new URLSearchParams({
    client_id: clientId,
    redirect_uri: redirectUri,
    state,
    code_challenge: hash('sha256', verifierOf(attempt), 'base64url'),
    code_challenge_method: 'S256',
    // An account that was authorized before must not be linked without a look at its name.
    prompt: 'select_account',
  });
  return `${host.web}/login/oauth/authorize?${query}`;
}

/** Why a proof failed. `refused`: 403. `wrong_code`: 400. `away`: 503. `no_installation`: 404. */
export type ProofRefusal = 'refused' | 'wrong_code' | 'away' | 'no_installation';

const isAway = (answer: GithubAnswer): boolean => answer.kind === 'unavailable' || answer.kind === 'limited';

/** A person's token, which is used for this proof only, and the account of the person. */
export interface Proved {
  readonly token: string;
  readonly account: GithubAccount;
}

/** Exchanges the code for the person's token, and asks GitHub whose it is. */
export async function proveAccount(
  api: GithubApi,
  host: GithubHost,
  app: { readonly clientId: string; readonly clientSecret: string; readonly redirectUri: string },
  { attempt, code }: { readonly attempt: Attempt; readonly code: string },
): Promise<Proved | ProofRefusal> {
  const answer = await api.exchangeCode(host, {
    client_id: app.clientId,
    client_secret: app.clientSecret,
    code,
    redirect_uri: app.redirectUri,
    code_verifier: verifierOf(attempt),
  });
  if (isAway(answer)) return 'away';
  const token: unknown = answer.kind === 'ok' ? Reflect.get(Object(answer.body), 'access_token') : undefined;
  if (typeof token !== 'string') return 'wrong_code';
  const user = await api.asPerson(host, token, { method: 'GET', path: '/user' });
  if (user.kind !== 'ok') return isAway(user) ? 'away' : 'wrong_code';
  const account = accountOf(user.body);
  return account === null ? 'away' : { token, account };
}

function accountOf(value: unknown): (GithubAccount & { readonly type: string }) | null {
  const { id, login, type } = Object(value);
  return Number.isSafeInteger(id) && typeof login === 'string' ? { id, login, type: String(type) } : null;
}

/**
 * Returns the account of an installation if the person administers it: it is the person's own account, or an organization that the person
 * owns. The person's own token proves this; the number of an installation proves nothing.
 */
export async function proveInstallation(
  api: GithubApi,
  app: GithubAppKey,
  { token, account }: Proved,
  installationId: string,
): Promise<(GithubAccount & { readonly type: string }) | ProofRefusal> {
  const answer = await api.asApp(app, { method: 'GET', path: `/app/installations/${installationId}` });
  if (isAway(answer)) return 'away';
  if (answer.kind !== 'ok') return 'no_installation';
  const of = accountOf(Reflect.get(Object(answer.body), 'account'));
  if (of === null) return 'no_installation';
  if (of.type !== 'Organization') return of.id === account.id ? of : 'refused';
  const path = `/user/memberships/orgs/${encodeURIComponent(of.login)}`;
  const membership = await api.asPerson(app.host, token, { method: 'GET', path });
  if (isAway(membership)) return 'away';
  if (membership.kind !== 'ok') return 'refused';
  const { role, state, organization } = Object(membership.body);
  // Compare the id too: the organization may have been renamed, and its name taken, between the two requests.
  return role === 'admin' && state === 'active' && Object(organization).id === of.id ? of : 'refused';
}
