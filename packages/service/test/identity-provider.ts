/** Test support: a real identity provider (npm `oidc-provider`), and a browser that signs in there. */
import { createHmac, generateKeyPairSync, type JsonWebKey, type KeyObject, sign } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Configuration, Provider } from 'oidc-provider';

export const clientId = 'runyard';
export const clientSecret = 'a secret of the client, with : and %';

/** A person who has an account at the provider. */
export interface Account {
  readonly name: string;
  readonly email?: string;
  readonly groups: readonly string[];
  /** Further claims. */
  readonly more?: Readonly<Record<string, unknown>>;
}

interface SigningKey {
  readonly kid: string;
  readonly privateKey: KeyObject;
}

type Claims = Record<string, unknown>;

export interface TestIdentityProvider {
  readonly issuer: string;
  /** The accounts, by subject. If a test removes an account, the provider refuses the person. */
  readonly accounts: Map<string, Account>;
  /** Paths of the requests so far. */
  readonly requests: string[];
  key(): SigningKey;
  /** Replaces the signing key. The provider does not publish the old key any more. */
  rotateKeys(): void;
  /** Registers the service as a client of the provider. Before this call, the provider answers no request. */
  register(redirectUri: string): void;
  /** Called with the claims of each identity token; the provider sends the returned token instead. Null: the provider sends its own token. */
  changeToken: ((claims: Claims) => string) | null;
  /** Called with each answer with metadata, tokens or a person's data; the provider sends the returned answer instead. */
  changeAnswer: ((from: 'metadata' | 'tokens' | 'person', answer: Record<string, unknown>) => object) | null;
  /**
   * For requests to paths that match `path`: `with` is the error status of the answer, `silence` for no answer, or `loss` if the provider
   * handles the request, but its answer is lost. Null: the provider works normally.
   */
  trouble: { readonly path: RegExp; readonly with: number | 'silence' | 'loss' } | null;
  /** Signs in as a browser that opens `url`. Returns the address to which the provider sends the browser back. */
  signIn(url: string, subject: string): Promise<URL>;
  close(): Promise<void>;
}

/** Makes a key that no provider has published. */
export const newSigningKey = (): SigningKey => ({
  kid: `key-${Math.random().toString(36).slice(2)}`,
  privateKey: generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey,
});

/** The paths of `oidc-provider` whose answers a test can change. */
const answersOf = new Map([
  ['/.well-known/openid-configuration', 'metadata'],
  ['/token', 'tokens'],
  ['/me', 'person'],
] as const) as ReadonlyMap<string, 'metadata' | 'tokens' | 'person'>;

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Returns a token with these claims, signed with the key. */
export function signToken(claims: Claims, { kid, privateKey }: SigningKey): string {
  const text = `${encode({ alg: 'RS256', kid })}.${encode(claims)}`;
  return `${text}.${sign('sha256', Buffer.from(text), privateKey).toString('base64url')}`;
}

/** Returns a token with a signature that a service must refuse: HS256 signs with the client secret, and `none` means no signature. */
export function weakToken(claims: Claims, alg: 'HS256' | 'none'): string {
  const text = `${encode({ alg })}.${encode(claims)}`;
  return `${text}.${alg === 'none' ? '' : createHmac('sha256', clientSecret).update(text).digest('base64url')}`;
}

/**
 * Starts a provider on a free port of this machine. `host`: the name of this machine in URLs. For a browser, two names are two different
 * sites. `path`: path of the issuer. `more`: further settings of `oidc-provider`.
 */
export async function startIdentityProvider(
  host = '127.0.0.1',
  { path = '', more = {} }: { readonly path?: string; readonly more?: Configuration } = {},
): Promise<TestIdentityProvider> {
  let key = newSigningKey();
  let redirectUri = '';
  let handle: ((request: IncomingMessage, response: ServerResponse) => void) | undefined;
  let provider: Provider | undefined;
  const accounts = new Map<string, Account>();
  const requests: string[] = [];

  const interact = async (request: IncomingMessage, response: ServerResponse) => {
    if (provider === undefined) return;
    const { params } = await provider.interactionDetails(request, response);
    const accountId = /subject=(\w+)/.exec(request.headers.cookie ?? '')?.[1] ?? '';
    if (!accounts.has(accountId)) {
      const denied = { error: 'access_denied', error_description: 'no such person' };
      return void (await provider.interactionFinished(request, response, denied));
    }
    const grant = new provider.Grant({ accountId, clientId });
    grant.addOIDCScope(String(params.scope));
    const consent = { grantId: await grant.save() };
    await provider.interactionFinished(request, response, { login: { accountId }, consent });
  };

  const changed = (from: 'metadata' | 'tokens' | 'person', answer: Record<string, unknown>): object => {
    const { changeToken, changeAnswer } = self;
    if (changeToken !== null && typeof answer.id_token === 'string') {
      const [, claims = ''] = answer.id_token.split('.');
      answer.id_token = changeToken(JSON.parse(Buffer.from(claims, 'base64url').toString()));
    }
    return changeAnswer?.(from, answer) ?? answer;
  };

  const base = path.replace(/\/$/, '');
  const server = createServer((request, response) => {
    const url = (request.url ?? '').slice(base.length);
    requests.push(url.split('?')[0] ?? '');
    const { trouble } = self;
    if (trouble?.path.test(url)) {
      if (trouble.with === 'loss') response.end = () => response.destroy();
      else if (trouble.with === 'silence') return;
      else return void response.writeHead(trouble.with, { 'content-type': 'text/plain' }).end('trouble');
    }
    // `oidc-provider` finds the path below which it is mounted as in Express.
    Object.assign(request, { originalUrl: request.url, url });
    if (url.startsWith('/interaction/'))
      return void interact(request, response).catch((error) => response.writeHead(500).end(String(error)));
    const from = answersOf.get(url.split('?')[0] ?? '');
    if (from !== undefined && (self.changeToken ?? self.changeAnswer) !== null && trouble === null) {
      const end = response.end.bind(response) as (text: string) => ServerResponse;
      response.end = ((body: string | Buffer) => {
        const text = JSON.stringify(changed(from, JSON.parse(String(body))));
        response.setHeader('content-length', Buffer.byteLength(text));
        return end(text);
      }) as ServerResponse['end'];
    }
    handle?.(request, response);
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const origin = `http://${host}:${(server.address() as AddressInfo).port}`;
  const issuer = `${origin}${path}`;

  const build = () => {
    provider = new Provider(issuer, {
      clients: [
        {
          client_id: clientId,
          client_secret: clientSecret,
          redirect_uris: [redirectUri],
          grant_types: ['authorization_code', 'refresh_token'],
        },
      ],
      jwks: {
        keys: [{ ...(key.privateKey.export({ format: 'jwk' }) as JsonWebKey), kid: key.kid, use: 'sig', alg: 'RS256' }],
      } as never,
      cookies: { keys: ['a key of the tests'] },
      claims: {
        openid: ['sub'],
        profile: ['name', 'preferred_username'],
        email: ['email'],
        groups: ['groups', 'group_names', 'roles'],
      },
      features: { devInteractions: { enabled: false } },
      interactions: { url: (_context, { uid }) => `${base}/interaction/${uid}` },
      findAccount: (_context, accountId) => {
        const account = accounts.get(accountId);
        if (account === undefined) return undefined;
        const { more, ...claims } = account;
        return { accountId, claims: () => ({ sub: accountId, ...claims, ...more }) as { sub: string } };
      },
      ttl: {
        AccessToken: 600,
        AuthorizationCode: 60,
        Grant: 3600,
        IdToken: 600,
        Interaction: 600,
        RefreshToken: 3600,
        Session: 3600,
      },
      ...more,
    });
    handle = provider.callback();
  };

  const self: TestIdentityProvider = {
    issuer,
    accounts,
    requests,
    key: () => key,
    rotateKeys: () => {
      key = newSigningKey();
      build();
    },
    register: (uri) => {
      redirectUri = uri;
      build();
    },
    changeToken: null,
    changeAnswer: null,
    trouble: null,
    signIn: async (url, subject) => {
      const cookies = new Map([['subject', subject]]);
      let address = new URL(url);
      while (address.origin === origin) {
        const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
        const answer = await fetch(address, { redirect: 'manual', headers: { cookie } });
        for (const each of answer.headers.getSetCookie()) {
          const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(each) ?? [];
          cookies.set(name, value);
        }
        const location = answer.headers.get('location');
        if (location === null) throw new Error(`${address} answered ${answer.status}: ${await answer.text()}`);
        address = new URL(location, origin);
      }
      return address;
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return self;
}
