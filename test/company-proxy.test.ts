/**
 * Tests a whole system behind a company's proxy. Only the proxy knows the names of the servers. Each connection that service and worker open is
 * recorded: all connections to other machines lead to the proxy.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { EventSubscriptionWithSecret } from '@runyard/contract/team/event-subscriptions';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ForwardProxy, startForwardProxy } from './fakes/forward-proxy.ts';
import { type FakeGitHost, startFakeGitHost } from './fakes/git-host.ts';
import { type FakeModels, fakeModelKeys, startFakeModels } from './fakes/models.ts';
import { type FakeWebhookReceiver, startFakeWebhookReceiver } from './fakes/webhook-receiver.ts';
import { eventually, type System, sandboxProblem, startSystem } from './support/system.ts';

const portOf = ({ url }: { readonly url: string }): number => Number(new URL(url).port);

describe.skipIf(sandboxProblem !== null)('behind the proxy of a company', () => {
  let folder: string;
  let proxy: ForwardProxy;
  let models: FakeModels;
  let git: FakeGitHost;
  let receiver: FakeWebhookReceiver;
  let system: System;
  const registry = createServer((request, response) => void response.end(`package ${request.url}\n`));

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'runyard-company-'));
    [models, git, receiver] = await Promise.all([startFakeModels(), startFakeGitHost(), startFakeWebhookReceiver()]);
    await git.commit('acme', 'site', { 'README.md': 'cloned\n' });
    await new Promise<void>((resolve) => registry.listen(0, '127.0.0.1', resolve));
    const registryPort = (registry.address() as AddressInfo).port;
    proxy = await startForwardProxy({
      'models.company.example:443': portOf(models),
      'git.company.example:443': portOf(git),
      'hooks.company.example:443': receiver.port,
      'packages.company.example:443': registryPort,
      'packages.company.example:80': registryPort,
    });
    const settings = {
      ...{ HTTPS_PROXY: proxy.url, HTTP_PROXY: proxy.url, RUNYARD_CA_FILE: proxy.caFile },
      NODE_OPTIONS: `--import=${path.join(import.meta.dirname, 'support/record-connections.mjs')}`,
      RECORD_CONNECTIONS: path.join(folder, 'connections'),
    };
    system = await startSystem({
      workers: [],
      env: {
        ...settings,
        RUNYARD_MODEL_BASE_URL: 'https://models.company.example/local/v1',
        RUNYARD_MODEL_KEY: fakeModelKeys.local,
        RUNYARD_CODE_HOST_URL: 'https://git.company.example/{owner}/{repo}.git',
      },
    });
    proxy.lead('runyard.company.example:80', Number(new URL(system.baseUrl()).port));
    system.startWorker(undefined, { RUNYARD_BASE_URL: 'http://runyard.company.example' });
    await eventually('connection of the worker', async () => (await system.logs()).includes('worker connected'));
  });
  afterAll(async () => {
    await system?.stop();
    await Promise.all([models?.close(), git?.close(), receiver?.close(), proxy?.close()]);
    registry.close();
    await rm(folder, { recursive: true, force: true });
  });

  test('a run uses a model, a repository and allowed hosts, its end is delivered, and each connection goes through the proxy', async () => {
    const subscription = { url: 'https://hooks.company.example/x', events: ['run.ended'] };
    const { secret } = await system.call<EventSubscriptionWithSecret>(
      'POST',
      '/event-subscriptions',
      subscription,
      201,
    );
    receiver.secrets.push(secret);
    const config = {
      name: 'Company',
      github_repos: [{ owner: 'acme', repo: 'site' }],
      network: { allowed_hosts: ['packages.company.example', 'packages.company.example:80', 'absent.company.example'] },
    };
    const { uid } = await system.call<{ uid: string }>('POST', '/agent/environments', { config }, 201);
    const script = [
      'cat site/README.md README.md 2> /dev/null',
      'node -e \'fetch("http://packages.company.example/plain").then(async (r) => console.log(r.status, await r.text()))\'',
      'NODE_TLS_REJECT_UNAUTHORIZED=0 node -e \'fetch("https://packages.company.example/secure").then(async (r) => console.log(r.status, await r.text()))\'',
      'node -e \'fetch("https://absent.company.example/").catch((error) => console.log("refused:", error.cause?.message))\'',
      'env | grep clerk || echo no password here',
    ].join('; ');
    const runId = await system.createRun(`Please run \`${script}\`.`, { config: { environment_id: uid } });
    const run = await system.untilEnded(runId);
    expect(run.state, JSON.stringify(run.status_message)).toBe('SUCCEEDED');
    const conversation = JSON.stringify(await system.call('GET', `/agent/runs/${runId}/conversation`));
    expect(conversation).toContain('cloned');
    expect(conversation).toContain('200 package /plain');
    expect(conversation).toContain('200 package /secure');
    expect(conversation).toContain('no password here');
    await eventually('delivery of the end', async () => receiver.received.some(({ verified }) => verified));

    const asked = new Set(proxy.requests.map((line) => line.replace(/(http:..[^/]+).*/, '$1')));
    for (const line of [
      'CONNECT models.company.example:443',
      'CONNECT git.company.example:443',
      'CONNECT hooks.company.example:443',
      'CONNECT packages.company.example:443',
      'GET http://packages.company.example',
      'CONNECT runyard.company.example:80',
      'POST http://runyard.company.example',
    ])
      expect(asked).toContain(line);
    expect([...asked].filter((line) => line.startsWith('407'))).toEqual([]);
    const connections = new Set((await readFile(path.join(folder, 'connections'), 'utf8')).trim().split('\n'));
    expect(connections).toEqual(new Set([`127.0.0.1:${proxy.port}`]));
    expect(await system.logs()).not.toContain('p%40ss');
  });

  test('variables of an environment do not change the connections of service and worker', async () => {
    const elsewhere = 'http://elsewhere.company.example:3128';
    const variables = { HTTPS_PROXY: elsewhere, http_proxy: elsewhere, NO_PROXY: '*' };
    const config = { name: 'Hostile', variables, network: { allowed_hosts: ['packages.company.example:80'] } };
    const { uid } = await system.call<{ uid: string }>('POST', '/agent/environments', { config }, 201);
    const before = proxy.requests.length;
    const runId = await system.createRun('Please run `echo done`.', { config: { environment_id: uid } });
    const run = await system.untilEnded(runId);
    expect(run.state, JSON.stringify(run.status_message)).toBe('SUCCEEDED');
    await expect.poll(() => proxy.requests.slice(before)).toContain('CONNECT hooks.company.example:443');
    expect(proxy.requests.join()).not.toContain('elsewhere');
    const connections = new Set((await readFile(path.join(folder, 'connections'), 'utf8')).trim().split('\n'));
    expect(connections).toEqual(new Set([`127.0.0.1:${proxy.port}`]));
  });
});
