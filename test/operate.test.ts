/** Runs the commands of docs/operate.md unchanged, but with other ports and with two empty databases on a PostgreSQL server. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { createEmptyDatabase } from '../packages/service/test/database.ts';
import { isOnPath } from './checks/system-packages.ts';
import { runCommand } from './support/command-line.ts';
import { freePort } from './support/free-port.ts';
import { runyardFile } from './support/programs.ts';
import { sandboxProblem } from './support/system.ts';

const repository = path.resolve(import.meta.dirname, '..');
const page = readFileSync(path.join(repository, 'docs/operate.md'), 'utf8');
/**
 * The commands in the `sh` blocks of the page, each with the output in the `text` block below it. A command without such a block
 * prints nothing. Without promtool, the two steps that need it are left out.
 */
const steps = [...page.matchAll(/^```sh\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?/gms)]
  .map(([, command = '', prints]) => ({ command, prints }))
  .filter(({ command }) => isOnPath('promtool') || !command.includes('promtool'));
const literally = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&');
/** Returns a pattern that matches the expected output. `…` matches any text. */
const printed = (expected: string): RegExp =>
  new RegExp(`^${expected.trim().split('…').map(literally).join('.*')}$`, 's');

const folder = mkdtempSync(path.join(tmpdir(), 'runyard-operate-'));
const databases: Awaited<ReturnType<typeof createEmptyDatabase>>[] = [];
afterAll(async () => {
  for (const { drop } of databases) await drop();
  rmSync(folder, { recursive: true, force: true });
});

describe.skipIf(sandboxProblem)(`operate.md${sandboxProblem ? ` (skipped: ${sandboxProblem})` : ''}`, () => {
  test('shows the output that its commands really print', { timeout: 300_000 }, async () => {
    const [database, copy] = [await createEmptyDatabase(), await createEmptyDatabase()];
    databases.push(database, copy);
    const ports = new Map<string, number>();
    for (const port of ['4181', '4182', '4183', '9464']) ports.set(port, await freePort());
    const runyard = await runyardFile();
    const script = steps
      .map(({ command }) => `${command}\nprintf '\\036'`)
      .join('\n')
      .replaceAll(/\b(?:418[123]|9464)\b/g, (port) => String(ports.get(port)))
      .replaceAll('bin/runyard', runyard);
    const { output } = await runCommand(['bash', '-c', `exec 2>&1\n${script}`], {
      cwd: repository,
      env: { PATH: process.env.PATH ?? '', TMPDIR: folder, DATABASE_URL: database.url, COPY_URL: copy.url },
    });
    const outputs = output.split('\x1e');
    for (const [index, { command, prints }] of steps.entries())
      expect.soft(outputs[index]?.trim(), command).toMatch(prints === undefined ? /^$/ : printed(prints));
    expect(outputs).toHaveLength(steps.length + 1);
  });
});
