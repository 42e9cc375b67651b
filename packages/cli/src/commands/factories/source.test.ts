import { beforeEach, expect, test } from 'vitest';
import { baseFiles } from '../../../../service/test/definitions.ts';
import { testSources } from '../../../../service/test/factory-sources.ts';
import { type Context, createContext } from '../../context/context.ts';
import { Failure } from '../../exits/failure.ts';
import { removeFactorySource, setFactorySource, showFactorySource, syncFactorySource } from './source.ts';

const { factory, push, service, definitions } = await testSources();
let uid = '';
beforeEach(() => {
  uid = factory.path.split('/').at(-1) ?? '';
});

/** Runs the command. Returns its output and, if it fails, the exit code and the message. */
async function printedBy(command: (context: Context) => Promise<void>): Promise<string> {
  const printed: string[] = [];
  const print = (text: string) => void printed.push(text);
  const env = { RUNYARD_BASE_URL: service.baseUrl, RUNYARD_API_KEY: service.key };
  await command({ ...createContext(env), out: print, report: print }).catch((error: unknown) => {
    if (!(error instanceof Failure)) throw error;
    printed.push(`exit ${error.exitCode}: ${error.message}\n`);
  });
  return printed.join('');
}

test('a dry run shows the plan and does not set the source', async () => {
  await push(baseFiles);
  expect(await printedBy((context) => setFactorySource(context, uid, 'acme/factories', { dryRun: true }))).toBe(
    '+ factory\n+ agent foreman\n+ agent reviewer\n+ webhook alerts\nexit 2: 4 changes would be applied\n',
  );
  await service.problem(404, 'GET', `${factory.path}/source`);
});

test('a source whose definition has faults is not set, and the faults are printed with their folder', async () => {
  await push({ 'billing/factory.yaml': 'schemaVersion: v2\n' });
  const set = { folder: 'billing', yes: true } as const;
  const printed = await printedBy((context) => setFactorySource(context, uid, 'acme/factories', set));
  expect(printed).toMatch(/^billing\/factory\.yaml:1:\d+: .*exit 1: the service found \d faults in the definition\n$/s);
  await service.problem(404, 'GET', `${factory.path}/source`);
});

test('a source that cannot be read is not set', async () => {
  expect(await printedBy((context) => setFactorySource(context, uid, 'acme/none', { yes: true }))).toMatch(
    /^exit 1: The code host has no repository acme\/none/,
  );
  await service.problem(404, 'GET', `${factory.path}/source`);
});

test('the commands show the faults of a later commit, sync with the repository, and remove the source', async () => {
  const commit = await push(baseFiles);
  const set = { yes: true, every: 600 } as const;
  expect(await printedBy((context) => setFactorySource(context, uid, 'acme/factories', set))).toContain(
    `version 1 is applied, of the commit ${commit}\n`,
  );
  await push({ ...baseFiles, 'webhooks/alerts.yaml': 'secretName: "\\e[31mNONE"\n' });
  expect(await printedBy((context) => syncFactorySource(context, uid, {}))).toMatch(
    /^webhooks\/alerts\.yaml:1:13: the team has no secret .*exit 1: the service found a fault/s,
  );
  const output = await printedBy((context) => showFactorySource(context, uid, {}));
  expect(output).toMatch(
    new RegExp(`every 600 seconds.*in force +${commit}\nlast sync +faulty at .*\n +webhooks/alerts.yaml:1:13: `, 's'),
  );
  expect(output).not.toMatch(/[^\P{Cc}\n]/u);
  expect(await printedBy((context) => removeFactorySource(context, uid))).toContain('has no source now');
  expect(await definitions.webhooks()).toHaveLength(1);
});
