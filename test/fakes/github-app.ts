/**
 * The part of the API of a fake code host that serves a GitHub App, as GitHub Enterprise Server does below `/api/v3`: it finds the
 * installation of the App and creates tokens for it. It checks the signature of each JSON web token with the App's public key.
 */
import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FakeGitHostOptions } from './git-host.ts';

export interface FakeGitHubApp {
  readonly appId: string;
  /** PEM */
  readonly privateKey: string;
  /** All tokens that the fake has created, the oldest first. They open the repositories until `revoke`. */
  readonly tokens: readonly string[];
  revoke(): void;
  /** Options for `startFakeGitHost`. With them, only these tokens open the repositories of `owner`. */
  readonly options: Required<Pick<FakeGitHostOptions, 'accepts' | 'api'>>;
}

const installation = 4711;

/** Makes an App that is installed for `owner`. `lifeMs`: the lifetime of a token that the fake reports. */
export function makeFakeGitHubApp(owner: string, lifeMs = 3_600_000): FakeGitHubApp {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const appId = '123456';
  const tokens: string[] = [];
  const good = new Set<string>();

  const isApp = (request: IncomingMessage): boolean => {
    const [head = '', body = '', signature = ''] = (request.headers.authorization ?? '')
      .replace('Bearer ', '')
      .split('.');
    const isSigned = verify(
      'RSA-SHA256',
      Buffer.from(`${head}.${body}`),
      createPublicKey(publicKey.export({ type: 'spki', format: 'pem' })),
      Buffer.from(signature, 'base64url'),
    );
    if (!isSigned) return false;
    const { iss, iat, exp } = JSON.parse(Buffer.from(body, 'base64url').toString('utf8'));
    const now = Date.now() / 1000;
    return iss === appId && iat <= now && exp > now && exp - now <= 600;
  };
  const json = (response: ServerResponse, status: number, body: object) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));

  return {
    appId,
    privateKey: privateKey.export({ type: 'pkcs1', format: 'pem' }).toString(),
    tokens,
    revoke: () => good.clear(),
    options: {
      accepts: (repository, password) =>
        repository.startsWith(`${owner}/`) && password !== undefined && good.has(password),
      api: (request, response) => {
        const url = request.url ?? '';
        if (!url.startsWith('/api/v3/')) return false;
        if (!isApp(request)) json(response, 401, { message: 'A JSON web token could not be decoded' });
        else if (request.method === 'GET' && url.startsWith(`/api/v3/repos/${owner}/`) && url.endsWith('/installation'))
          json(response, 200, { id: installation });
        else if (request.method === 'POST' && url === `/api/v3/app/installations/${installation}/access_tokens`) {
          const token = `ghs_fake_${tokens.length}_${'x'.repeat(20)}`;
          tokens.push(token);
          good.add(token);
          json(response, 201, { token, expires_at: new Date(Date.now() + lifeMs).toISOString() });
        } else json(response, 404, { message: 'Not Found' });
        return true;
      },
    },
  };
}
