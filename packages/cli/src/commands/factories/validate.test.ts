import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { newFolder } from '../../../../../test/support/close-at-end.ts';
import { root } from '../../data-folder/installation.ts';
import { Failure } from '../../exits/failure.ts';
import { validateFactory } from './validate.ts';

let folder: string;
beforeEach(() => {
  folder = newFolder();
  write('factory.yaml', 'schemaVersion: v1alpha1\nname: demo\nrepositories: []\nagentDefaults:\n  model: auto\n');
  write('agents/foreman/agent.md', '---\nagentType: FOREMAN\n---\nRoute the work.\n');
});

function write(file: string, text: string): void {
  mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
  writeFileSync(path.join(folder, file), text);
}

async function validate(options: { json?: true } = {}) {
  const [out, reports]: [string[], string[]] = [[], []];
  const context = { out: (text: string) => void out.push(text), report: (text: string) => void reports.push(text) };
  try {
    await validateFactory(context, folder, options);
    return { out: out.join(''), reports };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return { out: out.join(''), reports, failure: error.message, exitCode: error.exitCode };
  }
}

test('validate prints a summary of a definition without faults, and ignores files of other programs', async () => {
  write('README.md', '# Demo');
  write('node_modules/x/agents/y/agent.md', 'no front matter');
  write('agents/foreman/skills/a/SKILL.md', 'x');
  expect(await validate()).toEqual({
    out: '',
    reports: ['the definition of demo has no faults: 1 agent, 0 automations, 0 webhooks, 0 runners, 1 skill'],
  });
});

test('validate prints faults in the form of compiler messages, and exits with 1', async () => {
  write('webhooks/ci.yaml', 'authmode: token\nsecretName: S\n');
  write('agents/notes.md', 'x');
  expect(await validate()).toEqual({
    out: [
      `${folder}/agents/notes.md:1:1: is no file of a definition: an agent is agents/<name>/agent.md, its skills are in agents/<name>/skills/\n`,
      `${folder}/webhooks/ci.yaml:1:1: authmode is not a known key; did you mean authMode?\n`,
    ].join(''),
    reports: [],
    failure: '2 faults in the definition',
    exitCode: 1,
  });
});

test('validate prints notices and exits with 0', async () => {
  write('automations/n/automation.md', '---\ntriggers: [{provider: linear, event: issue_created}]\n---\nx\n');
  const { out, failure } = await validate();
  expect(out).toContain('automation.md:2:23: notice: the provider linear is not available on this service');
  expect(failure).toBeUndefined();
});

test('validate --json prints JSON for editors', async () => {
  write('webhooks/ci.yaml', 'secretname: S\n');
  expect(JSON.parse((await validate({ json: true })).out)).toMatchObject({
    ok: false,
    faults: [{ file: 'webhooks/ci.yaml', line: 1, column: 1 }, { suggestion: 'secretName' }],
    notices: [],
  });
});

test('validate prints no control characters from a file', async () => {
  write('webhooks/ci.yaml', '"a\\e]0;title\\a\\e[31m": 1\nsecretName: S\n');
  expect((await validate()).out).not.toMatch(/[^\P{Cc}\n]/u);
});

test('validate does not follow links and does not read pipes', async () => {
  symlinkSync('/etc/passwd', path.join(folder, 'agents/foreman/passwd'));
  expect((await validate()).failure).toContain('agents/foreman/passwd: is no regular file');
  rmSync(path.join(folder, 'agents/foreman/passwd'));
  execFileSync('mkfifo', [path.join(folder, 'agents/foreman/agent2.md')]);
  expect((await validate()).failure).toContain('is no regular file');
});

test('validate reads only the beginning of a file that is too large', async () => {
  write('skills/a/SKILL.md', 'x'.repeat(5 * 1024 * 1024));
  expect((await validate()).out).toContain('SKILL.md:1:1: is too large; a file has at most 1048576 bytes');
});

test('bin/runyard factory validate works without a service, and exits with 2 if the folder does not exist', () => {
  const run = (dir: string) =>
    spawnSync(process.execPath, [path.join(root, 'packages/cli/src/main.ts'), 'factory', 'validate', dir], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH },
    });
  expect(run(folder)).toMatchObject({ status: 0, stderr: expect.stringContaining('has no faults') });
  expect(run(path.join(folder, 'none'))).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('there is no folder'),
  });
});
