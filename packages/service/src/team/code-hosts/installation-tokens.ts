/** Requests tokens for the installations of GitHub Apps. A token is cached in this process until shortly before it expires. */

import { createPrivateKey, type KeyObject, sign } from 'node:crypto';
import type { Repository } from '@runyard/contract/environments/repositories';
import { askCodeHost, type HostAnswer } from './ask.ts';
import type { ChosenCredential } from './credential.ts';

/** Describes the API of a code host. */
export interface CodeHostApi {
  readonly kind: 'github' | 'gitlab';
  /** Base URL of the API, without a slash at the end. */
  readonly url: string;
}

/** Returns the API of the host of a clone URL. `setting`: RUNYARD_CODE_HOST_API_URL. */
export function apiOf(host: URL, setting: string | undefined): CodeHostApi {
  if (setting !== undefined) {
    const url = setting.replace(/\/+$/, '');
    return { kind: url.endsWith('/api/v4') ? 'gitlab' : 'github', url };
  }
  if (host.hostname === 'github.com') return { kind: 'github', url: 'https://api.github.com' };
  if (host.hostname === 'gitlab.com' || host.hostname.startsWith('gitlab.'))
    return { kind: 'gitlab', url: `${host.origin}/api/v4` };
  // Every other host counts as a GitHub Enterprise Server.
  return { kind: 'github', url: `${host.origin}/api/v3` };
}

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Reads the private key of an App. If the key cannot be used, returns the reason as a string. */
export function readAppKey(pem: string): KeyObject | string {
  let key: KeyObject;
  try {
    key = createPrivateKey(pem);
  } catch {
    return 'is not a private key in PEM format. Download one in the settings of the App, and send the whole file';
  }
  const bits = key.asymmetricKeyDetails?.modulusLength ?? 0;
  if (key.asymmetricKeyType !== 'rsa' || bits < 2048) return 'must be an RSA key of at least 2048 bits';
  return key;
}

/**
 * Returns a JSON web token by which the App proves its identity to GitHub
 * (https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-json-web-token-jwt-for-a-github-app),
 * signed with RS256 (RFC 7518, 3.3). The validity of the token begins a minute in the past, because clocks differ, and lasts less than
 * the ten minutes that GitHub allows. `nowMs`: Unix time in milliseconds.
 */
export function signAppToken(appId: string, key: KeyObject, nowMs: number): string {
  const now = Math.floor(nowMs / 1000);
  const signed = `${part({ alg: 'RS256', typ: 'JWT' })}.${part({ iat: now - 60, exp: now + 540, iss: appId })}`;
  return `${signed}.${sign('RSA-SHA256', Buffer.from(signed), key).toString('base64url')}`;
}

export interface StoredApp {
  /** Id of the stored credential. */
  readonly id: string;
  readonly appId: string;
  readonly installationId: string | null;
}

export interface InstallationTokens {
  /** Returns a token for the repository. `openKey` returns the private key as PEM; it is called only when a new token is needed. */
  tokenFor(app: StoredApp, openKey: () => string, host: URL, repository: Repository): Promise<ChosenCredential>;
}

/** A token is not used in the last minutes before it expires, because a request with it may start a little later. */
const spareMs = 5 * 60_000;
/** Maximum time for which a token is used. GitHub's tokens live for an hour, but this limit does not depend on GitHub's clock. */
const longestMs = 55 * 60_000;
/** Time for which the id of an owner's installation is cached. */
const installationMs = 10 * 60_000;
const askMs = 10_000;
const maxRemembered = 1_000;

/** Thrown if an answer of the API cannot be used. The message is the reason. */
class Failed extends Error {
  readonly kind: 'unusable' | 'unavailable';
  constructor(kind: Failed['kind'], message: string) {
    super(message);
    this.kind = kind;
  }
}

interface Remembered<T> {
  readonly value: Promise<T>;
  until: number;
}

/**
 * Caches a limited number of values, and drops all of them when this number is reached. Concurrent callers that want the same value share
 * one request.
 */
function remember<T>(now: () => number) {
  const known = new Map<string, Remembered<T>>();
  return {
    get: (name: string, ask: (keep: (until: number) => void) => Promise<T>): Promise<T> => {
      const found = known.get(name);
      if (found && found.until > now()) return found.value;
      if (known.size >= maxRemembered) known.clear();
      const entry: Remembered<T> = {
        value: ask((until) => {
          entry.until = until;
        }),
        // Maximum time for which callers wait for the same request of a value.
        until: now() + 2 * askMs,
      };
      known.set(name, entry);
      entry.value.catch(() => {
        if (known.get(name) === entry) known.delete(name);
      });
      return entry.value;
    },
    forget: (name: string) => void known.delete(name),
  };
}

/** Creates the cache of installation tokens. `apiUrl`: the setting RUNYARD_CODE_HOST_API_URL. */
export function openInstallationTokens(now: () => number, apiUrl: string | undefined): InstallationTokens {
  const tokens = remember<string>(now);
  const installations = remember<string>(now);

  async function ask(method: 'GET' | 'POST', url: string, appToken: string): Promise<HostAnswer> {
    const headers = {
      authorization: `Bearer ${appToken}`,
      accept: 'application/vnd.github+json',
      'x-github-api-version': '2022-11-28',
      ...(method === 'POST' ? { 'content-length': '0' } : {}),
    };
    const signal = AbortSignal.timeout(askMs);
    return await askCodeHost({ url: new URL(url), method, headers, signal, maxBytes: 64 * 1024 }).catch(() => {
      throw new Failed('unavailable', 'The API of the code host could not be reached for a token of the GitHub App.');
    });
  }

  /** Returns the JSON of a successful answer; throws an error for any other status. */
  function read(answer: HostAnswer, expected: number, missing: string): unknown {
    if (answer.status === expected) return JSON.parse(answer.bytes.toString('utf8'));
    if (answer.status === 404) throw new Failed('unusable', missing);
    if (answer.status === 401 || answer.status === 403)
      throw new Failed(
        'unusable',
        `The code host answered ${answer.status} to the GitHub App: its app_id or private_key is wrong, or it was suspended. Delete the credential and store it again.`,
      );
    throw new Failed('unavailable', `The API of the code host answered ${answer.status} to the GitHub App.`);
  }

  async function findInstallation(api: string, app: StoredApp, appToken: () => string, repository: Repository) {
    if (app.installationId !== null) return app.installationId;
    const { owner, repo } = repository;
    return await installations.get(`${app.id} ${owner.toLowerCase()}`, async (keep) => {
      const answer = await ask('GET', `${api}/repos/${owner}/${repo}/installation`, appToken());
      const missing = `The GitHub App is not installed for ${owner}/${repo}. Install it there at its settings.`;
      const id = Number(Reflect.get(Object(read(answer, 200, missing)), 'id'));
      if (!Number.isSafeInteger(id)) throw new Failed('unavailable', 'The API of the code host named no installation.');
      keep(now() + installationMs);
      return String(id);
    });
  }

  async function mint(api: string, installation: string, appToken: () => string, keep: (until: number) => void) {
    const url = `${api}/app/installations/${installation}/access_tokens`;
    const missing = `The GitHub App has no installation ${installation}. Delete the credential and store it with the right installation_id.`;
    const body = Object(read(await ask('POST', url, appToken()), 201, missing));
    const token: unknown = Reflect.get(body, 'token');
    if (typeof token !== 'string' || !/^[\x21-\x7e]{1,4096}$/.test(token))
      throw new Failed('unavailable', 'The API of the code host gave no token to the GitHub App.');
    const ends = Date.parse(String(Reflect.get(body, 'expires_at')));
    keep(Math.min(Number.isNaN(ends) ? 0 : ends - spareMs, now() + longestMs));
    return token;
  }

  return {
    tokenFor: async (app, openKey, host, repository) => {
      const api = apiOf(host, apiUrl).url;
      const appToken = () => {
        const key = readAppKey(openKey());
        if (typeof key === 'string') throw new Failed('unusable', `The private key of the GitHub App ${key}.`);
        return signAppToken(app.appId, key, now());
      };
      try {
        const installation = await findInstallation(api, app, appToken, repository);
        const name = `${app.id} ${installation}`;
        const password = await tokens.get(name, (keep) => mint(api, installation, appToken, keep));
        const refused = () => tokens.forget(name);
        return { kind: 'credential', id: app.id, credential: { username: 'x-access-token', password }, refused };
      } catch (error) {
        if (error instanceof Failed) return { kind: error.kind, message: error.message };
        if (error instanceof SyntaxError)
          return { kind: 'unavailable', message: 'The API of the code host did not answer with JSON.' };
        throw error;
      }
    },
  };
}
