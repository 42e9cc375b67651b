import { existsSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { agent, ended, fake, of, sh, start } from '../test/run.ts';

const token = 'kT9-deploy/token+1';
const certificate = `-----BEGIN-----\n${'Ab3/'.repeat(30)}\n-----END-----\n`;
const granted = {
  secrets: [
    { name: 'TOKEN', variable: 'DEPLOY_TOKEN', as: 'variable' as const, value: token },
    { name: 'CERTIFICATE', variable: 'CERTIFICATE', as: 'file' as const, value: certificate },
  ],
  redact: [token, certificate, 'an earlier value 42'],
};
const forms = [token, 'an earlier value 42', 'Ab3/'.repeat(30), Buffer.from(token).toString('base64').slice(0, 20)];

/** Returns everything that the agent sent to the service or printed, as one text. */
const reportedText = () => JSON.stringify([fake.events, fake.finished, fake.artifacts]) + agent.stderr();
const leaks = () => forms.filter((form) => reportedText().includes(form));

it('secrets are given to commands as variables and as files, and do not appear in reports', async () => {
  await start({
    ...granted,
    ...sh(
      `[ "$DEPLOY_TOKEN" = '${token}' ] && echo right`,
      'wc -c < "$CERTIFICATE"; stat -c %a "$CERTIFICATE"; echo "$CERTIFICATE" > where; cat "$CERTIFICATE"',
      'echo "$DEPLOY_TOKEN"; printf %s "$DEPLOY_TOKEN" | base64; echo an earlier value 42',
    ),
  });
  await ended();
  const outputs = of('action').map(({ action_id }) => fake.output(action_id));
  expect(outputs[0]).toBe('right\n');
  expect(outputs[1]).toMatch(new RegExp(`^${Buffer.byteLength(certificate)}\n600\n[\\s\\S]*«redacted»`));
  expect(outputs[2]).toMatch(/^«redacted»\n«redacted».{0,4}\n«redacted»\n$/);
  expect(leaks()).toEqual([]);
  const file = readFileSync(`${agent.workspace}/where`, 'utf8').trim();
  expect(file.startsWith(agent.workspace)).toBe(false);
  expect(existsSync(file)).toBe(false);
});

it('secrets are given to setup commands, and do not appear in the report of a failed command', async () => {
  await start({
    ...granted,
    ...sh('true'),
    environment: { uid: 'e', config: { setup_commands: ['echo "$DEPLOY_TOKEN"; cat "$CERTIFICATE"; exit 3'] } },
  });
  await ended();
  expect(of('setup_step_finished')[0]).toMatchObject({
    exit_code: 3,
    output_tail: expect.stringContaining('«redacted»'),
  });
  expect(JSON.stringify(fake.finished)).toContain('«redacted»');
  expect(leaks()).toEqual([]);
});

it('no process has a secret in its arguments', async () => {
  await start({
    ...granted,
    ...sh('cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" "\\n" | grep -c "deploy[/]token" || true'),
  });
  await ended();
  expect(fake.output(of('action')[0]?.action_id ?? '')).toBe('0\n');
});
