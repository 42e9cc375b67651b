/** The guide, command by command, as it is written, against a whole system. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { endCommands, runCommand } from './support/command-line.ts';
import { describeSystem } from './support/describe-system.ts';
import { freePort } from './support/free-port.ts';

const repository = path.resolve(import.meta.dirname, '..');

interface Step {
  readonly command: string;
  /** The output that the guide shows, `…` for anything; absent: none. */
  readonly prints?: string;
}

function stepsOf(page: string): Step[] {
  const blocks = page.matchAll(/^```sh\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?/gms);
  return [...blocks].map(([, command = '', prints]) => ({ command, ...(prints === undefined ? {} : { prints }) }));
}

const literally = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&');
const printed = (expected: string): RegExp =>
  new RegExp(`^${expected.trim().split('…').map(literally).join('.*')}$`, 's');

afterAll(endCommands);

describeSystem('the guide', { env: { RUNYARD_ALLOW_PRIVATE_NETWORKS: '127.0.0.0/8' } }, (system) => {
  test('prints the output that the guide shows', { timeout: 120_000 }, async () => {
    const page = readFileSync(path.join(repository, 'docs/guide.md'), 'utf8')
      .replace('http://127.0.0.1:4180/api/v1', `${system.baseUrl()}/api/v1`)
      .replace('$(cat .runyard/bootstrap-key)', system.key)
      .replaceAll('4190', String(await freePort()));
    const steps = stepsOf(page);
    expect(steps.length).toBeGreaterThan(10);
    // One shell for all of them, as at a person's terminal; a mark behind what each has printed.
    const script = steps.map(({ command }) => `${command}\nprintf '\\036'`).join('\n');
    const { output } = await runCommand(['bash', '-c', `exec 2>/dev/null\n${script}`], { cwd: repository });
    const outputs = output.split('\x1e');
    for (const [index, { command, prints }] of steps.entries()) {
      expect.soft(outputs[index]?.trim(), command).toMatch(prints === undefined ? /^$/ : printed(prints));
    }
    expect(outputs.at(-1)).toBe('');
  });
});
