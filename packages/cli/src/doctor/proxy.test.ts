import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { parseSettings } from '@runyard/contract/settings/settings';
import { expect, test } from 'vitest';
import { startForwardProxy } from '../../../../test/fakes/forward-proxy.ts';
import { closeAtEnd } from '../../../../test/support/close-at-end.ts';
import { checkProxy } from './proxy.ts';

const codeHost = closeAtEnd(createServer());
await new Promise<void>((resolve) => codeHost.listen(0, '127.0.0.1', resolve));
const proxy = closeAtEnd(
  await startForwardProxy({ 'git.company.example:443': (codeHost.address() as AddressInfo).port }),
);

function check(env: Record<string, string>, host = 'git.company.example') {
  const parsed = parseSettings({ RUNYARD_CODE_HOST_URL: `https://${host}/{owner}/{repo}.git` });
  if (!parsed.ok) throw new Error(parsed.problems.join());
  return checkProxy({ env, settings: parsed.settings });
}

test('doctor says whether the proxy of HTTPS_PROXY opens a connection to the code host, without the password', async () => {
  const shown = `http://127.0.0.1:${proxy.port}`;
  expect(await check({})).toEqual([]);
  expect(await check({ HTTPS_PROXY: proxy.url })).toEqual([
    { name: 'proxy', level: 'good', detail: `${shown} opens connections to git.company.example:443` },
  ]);
  expect(await check({ HTTPS_PROXY: proxy.url, NO_PROXY: 'company.example' })).toEqual([
    { name: 'proxy', level: 'good', detail: `${shown} takes connections` },
  ]);
  expect(await check({ HTTPS_PROXY: proxy.url }, 'other.example')).toMatchObject([
    { level: 'note', detail: `${shown} opens no connection to other.example:443: it answers 502` },
  ]);
  expect(await check({ HTTPS_PROXY: shown })).toMatchObject([{ level: 'bad', detail: expect.stringContaining('407') }]);
  const nobody = await check({ HTTPS_PROXY: 'http://clerk:secret@127.0.0.1:1' });
  expect(nobody).toMatchObject([{ level: 'bad', detail: expect.stringContaining('does not answer') }]);
  expect(JSON.stringify(nobody)).not.toContain('secret');
});
