import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as library from 'openid-client';
import { pino } from 'pino';
import { afterEach, expect, test } from 'vitest';
import { makeProvider } from './provider.ts';

let close = () => {};
afterEach(() => close());

/** Starts a provider that publishes these metadata. Returns the provider as an entry of the file makes it. */
async function publish(
  metadata: (origin: string) => object | null,
  { path = '', scopes = undefined as string[] | undefined } = {},
) {
  const server = createServer((_request, response) => {
    const published = metadata(origin);
    if (published === null) return void response.writeHead(404).end();
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(
      JSON.stringify({
        authorization_endpoint: `${origin}/auth`,
        token_endpoint: `${origin}/token`,
        ...published,
      }),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  close = () => void server.close();
  const config = {
    ...{
      id: 'acme',
      name: 'Acme',
      issuer: `${origin}${path}`,
      client_id: 'runyard',
      client_auth: 'client_secret_basic' as const,
    },
    ...{ parameters: {}, groups_claim: 'groups', timeout_seconds: 5, clock_tolerance_seconds: 30 },
    ...(scopes === undefined ? {} : { scopes }),
  };
  return { origin, provider: makeProvider(library, config, pino({ level: 'silent' })) };
}

const checks = { state: 's', nonce: 'n', verifier: 'v'.repeat(43) };
const scopeOf = async (given: Awaited<ReturnType<typeof publish>>) => {
  const begun = await given.provider.authorizationUrl(checks, 'http://127.0.0.1/sign-in');
  return begun.kind === 'url' ? new URL(begun.url).searchParams.get('scope') : begun.reason;
};

test('an issuer that the provider publishes in another spelling is reported with both spellings', async () => {
  const { origin, provider } = await publish((base) => ({ issuer: `${base}/app/` }), { path: '/app' });
  const reason = expect.stringContaining(
    `the file has the issuer ${origin}/app, and the provider publishes ${origin}/app/`,
  );
  expect(await provider.check()).toEqual(reason);
  expect(await provider.authorizationUrl(checks, '')).toMatchObject({ isSetting: true, reason });
});

test('an issuer that the provider does not know is reported with the address that was read', async () => {
  const { origin, provider } = await publish(() => null, { path: '/realms/acne' });
  const address = `${origin}/realms/acne/.well-known/openid-configuration`;
  const reason = expect.stringContaining(`${address} answers 404: correct \`issuer\``);
  expect(await provider.check()).toEqual(reason);
  expect(await provider.authorizationUrl(checks, '')).toMatchObject({ isSetting: true, reason });
});

test('an issuer for all tenants is reported with the advice to name the tenant', async () => {
  const { provider } = await publish((base) => ({ issuer: `${base}/{tenantid}/v2.0` }), { path: '/common/v2.0' });
  expect(await provider.check()).toMatch(/write the id of the tenant/);
});

test('each check asks the provider, and a failed one changes nothing for sign-ins with the metadata of before', async () => {
  let isAway = false;
  const given = await publish((issuer) => (isAway ? {} : { issuer }));
  expect(await given.provider.check()).toBeNull();
  isAway = true;
  expect(await given.provider.check()).not.toBeNull();
  expect(await scopeOf(given)).toContain('openid');
});

test('the usual scopes are sent only as far as the provider publishes them, and scopes of the file always', async () => {
  const metadata = (issuer: string) => ({ issuer, scopes_supported: ['openid', 'email', 'profile'] });
  expect(await scopeOf(await publish(metadata))).toBe('openid profile email');
  close();
  expect(await scopeOf(await publish((issuer) => ({ issuer })))).toBe('openid profile email offline_access');
  close();
  expect(await scopeOf(await publish(metadata, { scopes: ['offline_access'] }))).toBe('openid offline_access');
});
