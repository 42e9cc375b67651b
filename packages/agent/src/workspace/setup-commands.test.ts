import { tmpdir } from 'node:os';
import { expect, test } from 'vitest';
import type { NetworkAccess } from '../egress/forwarder.ts';
import { runSetupCommands } from './setup-commands.ts';

/** Returns the message of a failed setup command. */
async function failureOf(command: string, network: NetworkAccess): Promise<string> {
  const failed = runSetupCommands([command], {
    workspace: tmpdir(),
    network,
    env: process.env,
    step: (_kind, _name, work) => work({}),
    signal: new AbortController().signal,
  });
  return await failed.then(
    () => 'nothing failed',
    (error: Error) => error.message,
  );
}

test.each([
  'curl: (6) Could not resolve host: example.com',
  "fatal: unable to access 'https://github.com/a/b.git/': Could not resolve host: github.com",
  "Temporary failure resolving 'deb.debian.org'",
  'npm error code EAI_AGAIN',
  'socket.gaierror: [Errno -3] Temporary failure in name resolution',
  'dial tcp: lookup proxy.golang.org: no such host',
])('explains that sandboxes have no network if a command prints %s', async (printed) => {
  const command = `printf '%s\\n' ${JSON.stringify(printed)} >&2; exit 6`;
  const message = await failureOf(command, 'none');
  expect(message).toContain('exited with code 6');
  expect(message).toContain('The sandbox has no network');
  expect(message).toContain('github_repos');
  expect(await failureOf(command, 'allow_list')).toContain('network.allowed_hosts');
  expect(await failureOf(command, 'open')).not.toContain('no network');
});

test('the error of a setup command does not mention the network if the command fails for another reason', async () => {
  const message = await failureOf('echo no lockfile; exit 1', 'none');
  expect(message).toContain('Fix the command');
  expect(message).not.toContain('network');
});

test.each([
  'curl: (56) CONNECT tunnel failed, response 403',
  'npm error code E403',
  'OSError: Tunnel connection failed: 403 Forbidden',
])('names the rules of the environment if a proxy refused a command that prints %s', async (printed) => {
  const command = `printf '%s\\n' ${JSON.stringify(printed)} >&2; exit 6`;
  expect(await failureOf(command, 'allow_list')).toContain('connection_denied');
  expect(await failureOf(command, 'none')).toContain('Fix the command');
});
