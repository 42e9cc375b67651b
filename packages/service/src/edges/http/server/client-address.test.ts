import { get } from 'node:http';
import { keylessChecksPerMinute } from '@runyard/contract/limits';
import { describe, expect, test } from 'vitest';
import { openTestService, type TestService } from '../../../../test/service.ts';

const filesUrl = 'http://files.example:8443';
const direct = await openTestService({ env: { RUNYARD_FILES_URL: filesUrl } });
const proxied = await openTestService({
  env: { RUNYARD_TRUSTED_PROXIES: '127.0.0.1', RUNYARD_FILES_URL: filesUrl },
});

/** Returns the address of the audit entry that the creation of a key writes. */
async function auditedAddress(service: TestService, headers: Record<string, string>): Promise<string | undefined> {
  const body = { name: 'a key', kind: 'personal', expires_in: '1d' };
  const made = await service.request('POST', '/keys', { body, headers });
  expect(made.status, made.text).toBe(201);
  const [row] = await service.deps.db.query<{ address: string }>(
    'SELECT address FROM audit_entries WHERE request_id = $1',
    [made.headers.get('x-request-id')],
  );
  return row?.address;
}

/**
 * Sends a few more checks of files than the limit for requests without a key. Returns the number of answered checks before the first
 * refusal; null if none is refused.
 */
async function answeredChecks(service: TestService, headersOf: (index: number) => Record<string, string>) {
  for (let index = 0; index < keylessChecksPerMinute.address + 5; index++) {
    const options = { key: null, headers: headersOf(index), body: { files: [] } };
    if ((await service.request('POST', '/factory-files/validate', options)).status === 429) return index;
  }
  return null;
}

const statusOf = (service: TestService, path: string, headers: Record<string, string>): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    get(`${service.baseUrl}${path}`, { headers }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    }).on('error', reject);
  });

const forged = (index: number) => ({ 'x-forwarded-for': `198.51.100.${index % 250}` });

describe('behind a declared proxy', () => {
  test('requests are counted by the address of the client', async () => {
    expect(await answeredChecks(proxied, forged)).toBe(null);
    const oneClient = (index: number) => ({ 'x-forwarded-for': `198.51.100.${index % 250}, 192.0.2.1` });
    expect(await answeredChecks(proxied, oneClient)).not.toBe(null);
  });

  test('audit and log show the client address that the proxy reports, not an address that the client sends', async () => {
    const headers = { 'x-forwarded-for': '198.51.100.9, 192.0.2.1', 'x-request-id': 'of-a-client' };
    expect(await auditedAddress(proxied, headers)).toBe('192.0.2.1');
    const lines = proxied.logged.map((line) => JSON.parse(line)).filter((line) => line.request_id === 'of-a-client');
    expect(lines).toEqual([expect.objectContaining({ msg: 'request', client: '192.0.2.1' })]);
  });

  test('the host that the proxy names decides whether a request is for the origin of files', async () => {
    const host = { 'x-forwarded-host': 'FILES.example:8443' };
    expect(await statusOf(proxied, '/healthz', host)).toBe(404);
    expect(await statusOf(proxied, '/healthz', { ...host, 'x-forwarded-host': 'other.example' })).toBe(200);
  });
});

describe('without a declared proxy', () => {
  test('a client that forges X-Forwarded-For is counted by its own address', async () => {
    // The budget of the address is refilled a little while the test runs.
    expect(await answeredChecks(direct, forged)).toBeLessThanOrEqual(keylessChecksPerMinute.address + 2);
  });

  test('a client that forges X-Forwarded-For appears with its own address', async () => {
    expect(await auditedAddress(direct, forged(9))).toBe('127.0.0.1');
  });

  test('a forged X-Forwarded-Host of a client has no effect', async () => {
    expect(await statusOf(direct, '/healthz', { 'x-forwarded-host': 'files.example:8443' })).toBe(200);
    const forgedHost = { host: 'files.example:8443', 'x-forwarded-host': new URL(direct.baseUrl).host };
    expect(await statusOf(direct, '/healthz', forgedHost)).toBe(404);
  });
});
