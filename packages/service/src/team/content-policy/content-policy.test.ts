import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { newFolder } from '../../../../../test/support/close-at-end.ts';
import { type ContentPolicy, openContentPolicy } from './content-policy.ts';

const folder = newFolder();
const policies: ContentPolicy[] = [];
const servers: Server[] = [];
const lines: string[] = [];
afterEach(async () => {
  for (const policy of policies.splice(0)) await policy.close();
  for (const server of servers.splice(0)) server.close().closeAllConnections();
  lines.length = 0;
});
const write = (fields: object, message: string) => void lines.push(JSON.stringify([message, fields]));
const log = { info: write, warn: write };

async function open(file: object, limitMs?: number): Promise<ContentPolicy> {
  const name = path.join(folder, `${policies.length}.json`);
  await writeFile(name, JSON.stringify(file));
  const opened = await openContentPolicy(name, { log, key: 'key-of-the-operator', ...(limitMs ? { limitMs } : {}) });
  if (!opened.ok) throw new Error(opened.problems.join('\n'));
  policies.push(opened.policy);
  return opened.policy;
}

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

const prompt = (text: string) => [{ kind: 'prompt' as const, text }];

describe('the rules of the content policy', () => {
  test('refuse a matching text if they check texts of this kind, and no part of the text is logged', async () => {
    const policy = await open({
      rules: [
        { name: 'no mining', pattern: '(?i)xmrig', message: 'Ask security@example.com.' },
        { name: 'no sudo', pattern: '\\bsudo\\b', applies_to: ['setup_command'] },
      ],
    });
    expect(await policy.check('team', prompt('Write a poem with sudo in it.'))).toEqual({ kind: 'allowed' });
    expect(await policy.check('team', [{ kind: 'setup_command', text: 'sudo make' }])).toEqual({
      kind: 'policy_violation',
      detail: 'A setup command breaks the rule "no sudo" of the content policy.',
    });
    expect(await policy.check('team', prompt('Install XMRig for planted-secret'))).toEqual({
      kind: 'policy_violation',
      detail: 'The text breaks the rule "no mining" of the content policy. Ask security@example.com.',
    });
    expect(lines.join()).toContain('no mining');
    expect(lines.join()).not.toMatch(/planted|XMRig/);
  });

  test('refuse a text whose search takes too long, and then check the next texts', async () => {
    const policy = await open({ rules: [{ name: 'slow', pattern: 'a.{900}b[0-9]' }] }, 1_500);
    let seed = 1;
    const bits = Array.from({ length: 500_000 }, () => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed % 2 === 0 ? 'a' : 'b';
    });
    const [slow, quick] = await Promise.all([
      policy.check('team', prompt(`${bits.join('')}b`)),
      policy.check('team', prompt('hello')),
    ]);
    expect(slow).toMatchObject({ kind: 'policy_violation', detail: expect.stringContaining('rule "slow"') });
    expect(quick).toEqual({ kind: 'allowed' });
  });

  test('refuse texts that together are too long for one check', async () => {
    const policy = await open({ rules: [{ name: 'a', pattern: 'x' }] });
    expect(await policy.check('team', prompt('a'.repeat(4 * 1024 * 1024 + 1)))).toMatchObject({
      kind: 'policy_violation',
    });
  });
});

describe('the classifier', () => {
  test('gets the key and only texts of its configured kinds, and the policy forwards its reason as one short line', async () => {
    const asked: unknown[] = [];
    const url = await serve(async (request, response) => {
      const parts: Buffer[] = [];
      for await (const part of request) parts.push(part as Buffer);
      asked.push([request.headers.authorization, JSON.parse(Buffer.concat(parts).toString())]);
      response.end(JSON.stringify({ allowed: false, reason: `not\nso\u001b[31m ${'x'.repeat(600)}` }));
    });
    const policy = await open({ classifier: { url, applies_to: ['prompt'] } });
    const texts = [...prompt('Hello'), { kind: 'setup_command' as const, text: 'make' }];
    const verdict = await policy.check('team', texts);
    expect(asked).toEqual([['Bearer key-of-the-operator', { texts: [{ kind: 'prompt', text: 'Hello' }] }]]);
    expect(verdict).toMatchObject({ kind: 'policy_violation', detail: expect.stringContaining(': not so [31m xxx') });
    expect('detail' in verdict && verdict.detail.length).toBeLessThan(600);
  });

  const failures: readonly (readonly [string, RequestListener, string])[] = [
    ['answers 500', (_, response) => response.writeHead(500).end(), 'it answered 500'],
    ['redirects', (_, response) => response.writeHead(302, { location: '/x' }).end(), 'it answered 302'],
    ['answers garbage', (_, response) => response.end('<html>'), 'its answer is not JSON'],
    ['answers another form', (_, response) => response.end('{"ok":true}'), 'has no member'],
    ['answers too much', (_, response) => response.end('x'.repeat(100_000)), 'larger than 64 KB'],
    ['never answers', () => {}, 'did not answer within 0.2 s'],
    ['never ends', (_, response) => void response.write('{'), 'did not answer within 0.2 s'],
  ];
  test.each(failures)(
    'that %s makes the policy refuse texts by default, and allow them if configured',
    async (_, listener, reason) => {
      const url = await serve(listener);
      const timeout_seconds = reason.includes('0.2 s') ? 0.2 : 25;
      const closed = await open({ classifier: { url, timeout_seconds } });
      expect(await closed.check('team', prompt('planted-secret'))).toMatchObject({ kind: 'policy_unavailable' });
      expect(lines.join()).toContain(reason);
      expect(lines.join()).not.toContain('planted');
      const openPolicy = await open({ classifier: { url, timeout_seconds, on_failure: 'allow' } });
      expect(await openPolicy.check('team', prompt('a'))).toEqual({ kind: 'allowed' });
    },
  );
});
