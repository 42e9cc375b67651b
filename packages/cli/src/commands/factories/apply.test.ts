import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { newFolder } from '../../../../../test/support/close-at-end.ts';
import { baseFiles, filesOf, testDefinitions } from '../../../../service/test/definitions.ts';
import { openTestService } from '../../../../service/test/service.ts';
import { createContext } from '../../context/context.ts';
import { Failure } from '../../exits/failure.ts';
import { type ApplyOptions, applyFactory, exportFactory } from './apply.ts';

const service = await openTestService();
const definitions = testDefinitions(service);
let folder: string;
let factory: string;
beforeEach(async () => {
  folder = newFolder();
  factory = (await definitions.open()).split('/').at(-1) ?? '';
});

const context = {
  ...createContext({ RUNYARD_BASE_URL: service.baseUrl, RUNYARD_API_KEY: service.key }),
  out: () => {},
  report: () => {},
};

/** Adds a file to the stored definition. A hostile service could send such a file. */
const addStored = (file: string) =>
  service.deps.db.query(`UPDATE factory_definitions SET files = files || jsonb_build_array($1::jsonb)`, [
    JSON.stringify({ path: file, content: 'evil' }),
  ]);

/** Writes files into a folder and returns its path. */
function write(files: Readonly<Record<string, string>>): string {
  const from = path.join(folder, 'from');
  for (const [file, content] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(from, file)), { recursive: true });
    writeFileSync(path.join(from, file), content);
  }
  return from;
}

test('apply changes nothing if the factory has changed after the plan was shown', async () => {
  await definitions.apply(baseFiles);
  const from = write({ ...filesOf(baseFiles), 'agents/new/agent.md': '---\n---\n' });
  const disable = async () => {
    await service.request('POST', `/factory/${factory}/webhooks/${await definitions.webhookUid()}/disable`);
    return true;
  };
  await expect(applyFactory(context, from, { factory }, disable)).rejects.toThrow('has changed since the plan');
  expect((await definitions.webhooks())[0]?.enabled).toBe(false);
  await applyFactory(context, from, { factory }, async () => true);
  expect((await definitions.webhooks())[0]?.enabled).toBe(true);
  expect(await definitions.stored()).toMatchObject({ version: 2, drift: [] });
});

test('apply accepts binary files that have no effect, and export writes only text files of the definition', async () => {
  const kept = { ...filesOf(baseFiles), 'scorers/a.md': '\ufeffa\r\n' };
  const from = write({ ...kept, 'scorers/b.bin': '\u0000', 'README.md': 'a' });
  await applyFactory(context, from, { factory, yes: true });
  const to = path.join(folder, 'to');
  await exportFactory(context, to, { factory });
  const exported = readdirSync(to, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = exported.map(({ parentPath, name }) => path.relative(to, path.join(parentPath, name)));
  expect(Object.fromEntries(paths.map((file) => [file, readFileSync(path.join(to, file), 'utf8')]))).toEqual(kept);
});

test('export writes no file that other programs would execute', async () => {
  await definitions.apply(baseFiles);
  await addStored('.envrc');
  const to = path.join(folder, 'to');
  await exportFactory(context, to, { factory });
  expect(readdirSync(to).sort()).toEqual(['agents', 'factory.yaml', 'webhooks']);
  for (const file of ['skills/s/HEAD', 'skills/s/.vscode/tasks.json', 'scorers/.envrc', 'skills/s/refs/heads/main']) {
    const other = path.join(folder, file.replaceAll('/', '-'));
    const before = await definitions.stored();
    await addStored(file);
    await expect(exportFactory(context, other, { factory })).rejects.toThrow(file);
    expect(readdirSync(other)).toEqual([]);
    const printed: string[] = [];
    await exportFactory({ ...context, out: (text) => void printed.push(text) }, undefined, { factory, json: true });
    expect(JSON.parse(printed.join('')).files).toContainEqual({ path: file, content: 'evil' });
    expect(before.files).not.toContainEqual({ path: file, content: 'evil' });
  }
  await addStored('skills/s/.git/config');
  const other = path.join(folder, 'other');
  await expect(exportFactory(context, other, { factory })).rejects.toThrow('the path has a part .git');
  expect(existsSync(path.join(other, 'factory.yaml'))).toBe(false);
});

/** Runs `apply`, and returns the exit code and everything that was printed. */
async function codeAndText(from: string, options: ApplyOptions) {
  let text = '';
  const print = (piece: string) => {
    text += `${piece.trimEnd()}\n`;
  };
  const failure = await applyFactory({ ...context, out: print, report: print }, from, { factory, ...options }).then(
    () => null,
    (error: unknown) => error,
  );
  if (failure !== null && !(failure instanceof Failure)) throw failure;
  return { code: failure?.exitCode ?? 0, text: `${text}${failure?.message ?? ''}` };
}

test('a dry run exits with 2 if something would change, and with 0 if not', async () => {
  const from = write(filesOf(baseFiles));
  const { code, text } = await codeAndText(from, { dryRun: true });
  expect([code, text]).toEqual([2, expect.stringMatching(/^\+ factory\n.*\n4 changes would be applied$/s)]);
  await applyFactory(context, from, { factory, yes: true });
  expect(await codeAndText(from, { dryRun: true })).toEqual({ code: 0, text: 'nothing changes\n' });
  await service.request('POST', `/factory/${factory}/webhooks/${await definitions.webhookUid()}/disable`);
  expect(await codeAndText(from, { dryRun: true })).toEqual({
    code: 2,
    text: 'changed without files, and would be taken back:\n~ webhook alerts\n    enabled: false → true\n1 change would be applied',
  });
});

test('apply reports automations that do not fire, and exits with 3 if --strict is set', async () => {
  const files = {
    ...filesOf(baseFiles),
    'automations/triage/automation.md':
      '---\ntriggers:\n  - provider: github\n    event: issue_created\n---\n\nLook at it.\n',
    'automations/off/automation.md':
      '---\nenabled: false\ntriggers:\n  - provider: github\n    event: issue_created\n---\n\nLook at it.\n',
  };
  const reason = 'not fire: triggers[0]: the factory has no webhook with the signature scheme github\n';
  const from = write(files);
  expect(await codeAndText(from, { dryRun: true })).toMatchObject({
    code: 2,
    text: expect.stringContaining(`the automation triage would ${reason}`),
  });
  expect(await codeAndText(from, { dryRun: true, strict: true })).toMatchObject({
    code: 3,
    text: expect.stringMatching(/\nan automation would not fire$/),
  });
  expect((await definitions.automations()).length).toBe(0);
  const { code, text } = await codeAndText(from, { yes: true });
  expect([code, text]).toEqual([
    0,
    expect.stringContaining(`the automation triage does ${reason}version 1 is applied`),
  ]);
  expect(text).not.toContain('automation off does');
  expect(await codeAndText(from, { yes: true, strict: true })).toEqual({
    code: 3,
    text: `nothing changes\nthe automation triage does ${reason}an automation does not fire`,
  });
});

test.each(['review-pull-requests', 'fix-failing-main'])(
  'the example %s makes its factory in an empty installation with one apply',
  async (example) => {
    const from = path.resolve(import.meta.dirname, '../../../../../examples/factories', example);
    const named = { var: ['owner=acme', 'repository=site', 'model=runbook'], yes: true } as const;
    const printed: string[] = [];
    const report = (line: string) => void printed.push(line);
    await applyFactory({ ...context, out: report, report }, from, named);
    expect(printed.join('\n')).toContain('version 1 is applied');
    // Claiming the installation of an App gives the factory its webhook.
    const problems = printed.filter((line) => /not available|not fire/.test(line));
    for (const line of problems) expect(line).toContain('the factory has no webhook with the signature scheme github');
    printed.length = 0;
    await applyFactory({ ...context, out: report, report }, from, named);
    expect(printed.join('\n')).toContain('nothing changes');
  },
);
