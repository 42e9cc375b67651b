/** Stores an App: one that exists already, or one that GitHub has just created from a manifest. */

import { maxCodeHostCredentials, maxGithubApps } from '@runyard/contract/limits';
import type { CreateGithubAppRequest } from '@runyard/contract/team/github';
import type { Vault } from '../../platform/secrets/vault.ts';
import { invalid, Refusal, refuse } from '../../platform/serving/refusal.ts';
import type { Database, Queryable } from '../../platform/store/database/database.ts';
import type { Principal } from '../../team/access/keys/principal.ts';
import type { GithubAnswer, GithubApi } from '../../team/code-hosts/github-api.ts';
import {
  createCodeHostCredential,
  findAppCredential,
  listCodeHostCredentials,
  openAppCredential,
} from '../../team/code-hosts/records.ts';
import { type AppRow, insertApp, listApps, type NewApp, readApp } from './apps.ts';
import type { Attempt } from './authorize.ts';
import { githubHostOf, type HostSettings } from './hosts.ts';

export interface StoreAppDeps {
  readonly db: Database;
  readonly vault: Vault;
  readonly api: GithubApi;
  readonly settings: HostSettings;
}

export const away = (): Refusal =>
  refuse('resource_unavailable', {
    status: 503,
    detail: 'GitHub does not answer now. Try again in a moment.',
    headers: { 'retry-after': '10' },
  });

export const noHost = (): Refusal =>
  invalid([
    {
      path: '',
      message: 'this service clones from no fixed host of GitHub; set RUNYARD_CODE_HOST_URL to one',
    },
  ]);

const tooManyApps = (): Refusal =>
  refuse('conflict', { detail: 'The team has too many GitHub Apps; delete one first.' });

const isAway = ({ kind }: GithubAnswer): boolean => kind === 'unavailable' || kind === 'limited';

/** The members of GitHub's description of an App that the service uses; null if the answer has another form. */
function describedApp(body: unknown): { readonly appId: string; readonly slug: string; readonly owner: string } | null {
  const { id, slug, owner } = Object(body);
  const login: unknown = Reflect.get(Object(owner), 'login');
  const isApp = Number.isSafeInteger(id) && typeof slug === 'string' && /^[a-z0-9-]{1,100}$/i.test(slug);
  return isApp ? { appId: String(id), slug: slug.toLowerCase(), owner: typeof login === 'string' ? login : '' } : null;
}

async function insert(tx: Queryable, vault: Vault, by: Principal, app: NewApp): Promise<AppRow | Refusal> {
  const made = await insertApp(tx, vault, by, app);
  if (made === 'taken') return refuse('conflict', { detail: 'The team has stored this App already.' });
  if (made === 'too_many') return tooManyApps();
  return made;
}

/** Stores an App whose private key is a credential of the team. Asks GitHub for the name of the App. */
export async function storeExistingApp(
  { db, vault, api, settings }: StoreAppDeps,
  by: Principal,
  { credential_id: credentialId, client_id: clientId, client_secret, webhook_secret }: CreateGithubAppRequest,
): Promise<AppRow | Refusal> {
  const credential = await findAppCredential(db, by.teamId, credentialId);
  const wrong = (message: string) => invalid([{ path: 'credential_id', message }]);
  if (!credential) return wrong('the team has no credential of the kind github_app with this id');
  const host = githubHostOf(settings, credential.host);
  const privateKey = await openAppCredential(db, vault, credentialId);
  if (!host || !privateKey) return host ? wrong('this process cannot decrypt it; store it again') : noHost();
  const key = { uid: credentialId, appId: credential.appId, host, privateKey };
  const answer = await api.asApp(key, { method: 'GET', path: '/app' });
  if (isAway(answer)) return away();
  const described = answer.kind === 'ok' ? describedApp(answer.body) : null;
  if (!described) return wrong('GitHub does not accept it as the key of an App');
  const secrets = { webhookSecret: webhook_secret, clientSecret: client_secret };
  const { appId, slug } = described;
  const app = { credentialId, host: credential.host, appId, slug, clientId, ...secrets };
  return await db.transaction((tx) => insert(tx, vault, by, app));
}

/** Exchanges the code of a manifest for the new App with its secrets, and stores them. GitHub accepts each code once, for an hour. */
export async function storeCreatedApp(
  deps: StoreAppDeps,
  by: Principal,
  attempt: Attempt,
  code: string,
): Promise<AppRow | Refusal> {
  const { db, vault, api, settings } = deps;
  const host = githubHostOf(settings);
  if (!host) return noHost();
  const stored = await listCodeHostCredentials(db, by);
  // Check this before GitHub gives the secrets away, because it gives them only once.
  if (stored.filter(({ scope }) => scope === 'team').length >= maxCodeHostCredentials)
    return refuse('conflict', { detail: 'The team has too many credentials of code hosts; delete one first.' });
  if ((await listApps(db, by.teamId)).length >= maxGithubApps) return tooManyApps();
  if (await readApp(db, attempt.appUid))
    return refuse('conflict', { detail: 'An App was stored with this state already; begin again to create another.' });
  const answer = await api.asPerson(host, undefined, { method: 'POST', path: `/app-manifests/${code}/conversions` });
  if (isAway(answer)) return away();
  const described = answer.kind === 'ok' ? describedApp(answer.body) : null;
  const {
    client_id: clientId,
    client_secret: clientSecret,
    webhook_secret: webhookSecret,
    pem,
  } = Object(answer.kind === 'ok' ? answer.body : undefined);
  if (!described || [clientId, clientSecret, webhookSecret, pem].some((each) => typeof each !== 'string'))
    return invalid([{ path: 'code', message: 'GitHub does not accept it; create the App again' }]);
  const { appId, slug, owner } = described;
  const name = new URL(host.web).host.toLowerCase();
  return await db.transaction(async (tx) => {
    const request = { scope: 'team', kind: 'github_app', app_id: appId, private_key: pem, host: name } as const;
    const first = await createCodeHostCredential(tx, vault, by, request);
    // If all owners of the host have a credential already, this one is for the owner of the App.
    const credential = first === 'taken' ? await createCodeHostCredential(tx, vault, by, { ...request, owner }) : first;
    if (typeof credential === 'string')
      return refuse('conflict', {
        detail: `The team has a credential for ${owner} already. Delete it, and create the App again.`,
      });
    const secrets = { clientId, clientSecret, webhookSecret };
    return await insert(tx, vault, by, {
      uid: attempt.appUid,
      credentialId: credential.id,
      host: name,
      appId,
      slug,
      ...secrets,
    });
  });
}

export const isRefusal = (value: unknown): value is Refusal => value instanceof Refusal;
