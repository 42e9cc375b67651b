/** Applies the definition of a factory from a folder, and exports a definition into a folder. */
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { ApiError, type Client } from '@runyard/client';
import type { Command } from 'commander';
import { connect } from '../api.ts';
import { type Context, processContext } from '../context.ts';
import { planLines } from '../factory/plan-lines.ts';
import { isSame, planCodes, printFaults, showNotices, showPlan, strict, throwForPlan } from '../factory/print-plan.ts';
import { Failure } from '../failure.ts';
import { isConfirmed } from '../live/confirm.ts';
import { harmlessJson, harmlessLine } from '../live/harmless.ts';
import { allFactories, idOf } from '../named.ts';
import { asJson, factoryHelp } from '../options.ts';
import { validateFactory } from './factory.ts';
import { reportWaiting } from './report-waiting.ts';

export interface ApplyOptions {
  readonly factory?: string;
  readonly dryRun?: true;
  readonly strict?: true;
  readonly yes?: true;
  readonly json?: true;
}

/**
 * Shows the changes that the files of a folder would make, asks for confirmation, and applies the changes. Reads the files only once.
 * After the answer, makes the plan again and compares it with the plan that was shown. The request to apply contains the version of
 * the plan, so exactly the shown changes are applied. `confirm` asks the question.
 * @throws Failure with exit code 1 if the files have faults; 2 if there is no terminal for the question, or a dry run finds changes; 3
 * if `strict` is set and an automation does not fire
 */
export async function applyFactory(
  context: Context,
  folder: string,
  options: ApplyOptions,
  confirm = isConfirmed,
): Promise<void> {
  const [{ readDefinition }, { storedFiles }, { readDefinitionFolder }] = await Promise.all([
    import('@runyard/definitions/read-definition'),
    import('@runyard/definitions/stored-files'),
    import('../factory/read-folder.ts'),
  ]);
  const read = readDefinitionFolder(folder);
  const checked = readDefinition(read);
  // `validateFactory` prints the faults and throws.
  if (!checked.ok) return await validateFactory(context, folder, {});
  const files = storedFiles(read);
  const client = connect(context);
  const factoryUid =
    options.factory === undefined
      ? await findFactory(client, checked.definition.factory)
      : await idOf.factory(client, options.factory);
  const put = async (more: { readonly dry_run: boolean; readonly expected_version?: number }) => {
    try {
      return await client.applyFactoryDefinition({ params: { factoryUid }, body: { files, ...more } });
    } catch (error) {
      throw error instanceof ApiError && error.status === 422
        ? printFaults(context, folder, error.problem.errors)
        : error;
    }
  };
  const plan = await put({ dry_run: true });
  if (!options.json) showPlan(context, folder, plan, options.dryRun);
  if (options.dryRun || isSame(plan)) {
    if (options.json) context.out(`${harmlessJson(plan, 2)}\n`);
    return throwForPlan(plan, options);
  }
  if (!options.yes) {
    if (!(await confirm())) throw new Failure('nothing was applied');
    // Makes the plan again, because the factory may have changed while the person read the plan. For example, another person may have
    // disabled a webhook, which this command would enable again.
    const { changes, drift } = await put({ dry_run: true });
    if (!isDeepStrictEqual({ changes, drift }, { changes: plan.changes, drift: plan.drift }))
      throw new Failure('nothing was applied: the factory has changed since the plan. Run the command again');
  }
  const applied = await put({ dry_run: false, expected_version: plan.version });
  context.out(options.json ? `${harmlessJson(applied, 2)}\n` : `version ${applied.version} is applied\n`);
  if (!options.json) reportWaiting(context, applied.waiting);
  throwForPlan(applied, options);
}

/** Returns the UID of the factory that has the alias or, if the definition has no alias, the name of the definition. */
async function findFactory(
  client: Client,
  { name, alias }: { readonly name: string; readonly alias?: string | undefined },
): Promise<string> {
  const factories = await allFactories(client);
  const ofAlias = factories.filter((factory) => alias !== undefined && factory.alias === alias);
  const [found, ...others] = ofAlias.length > 0 ? ofAlias : factories.filter((factory) => factory.name === name);
  if (found && others.length === 0) return found.uid;
  const text = harmlessLine(name, 200);
  throw new Failure(
    found
      ? `several factories are called ${text}; name one with --factory UID`
      : `there is no factory ${text}; create it with: bin/runyard factory create NAME, or name one with --factory UID`,
  );
}

/**
 * Writes the definition of a factory into a new or empty folder or, with `json`, prints it as one JSON document.
 * @throws Failure with exit code 2 if the folder is missing or not empty; 1 if the definition has a file that another program would obey
 * in a folder
 */
export async function exportFactory(
  context: Context,
  folder: string | undefined,
  { factory, json }: { readonly factory: string; readonly json?: true },
): Promise<void> {
  if (folder === undefined && json === undefined) throw new Failure('name a folder, or use --json', 2);
  const client = connect(context);
  const factoryUid = await idOf.factory(client, factory);
  const definition = await client.getFactoryDefinition({ params: { factoryUid } });
  if (folder === undefined) return context.out(`${harmlessJson(definition, 2)}\n`);
  const { files, version, drift, notices } = definition;
  mkdirSync(folder, { recursive: true });
  if (readdirSync(folder).length > 0) throw new Failure(`the folder ${folder} is not empty`, 2);
  const { isPlainPath, pathFault, placeOf } = await import('@runyard/contract/factories/files/layout');
  const faults = files.flatMap(({ path: file }) => pathFault(file) ?? []);
  if (faults.length > 0) throw new Failure(`the service sent a file that cannot be written: ${faults[0]}`);
  const own = files.filter(({ path: file }) => placeOf(file).kind !== 'other');
  const obeyed = own.flatMap(({ path: file }) => (isPlainPath(file) ? [] : [`\n  ${harmlessLine(file, 400)}`]));
  if (obeyed.length > 0)
    throw new Failure(
      `nothing was written, because other programs may obey files with these names in a folder:${obeyed.slice(0, 20).join('')}\nRead the definition as JSON: bin/runyard factory export --json --factory ${factoryUid}`,
    );
  for (const { path: file, content } of own) {
    const target = path.join(folder, file);
    mkdirSync(path.dirname(target), { recursive: true });
    writeFileSync(target, content, { flag: 'wx' });
  }
  for (const line of drift.length > 0 ? ['differs now from these files:', ...planLines(drift)] : [])
    context.report(line);
  showNotices(context, folder, notices);
  context.report(`version ${version} is in ${harmlessLine(folder, 400)}: ${own.length} files`);
}

/** Declares `apply` and `export` of `factory`. */
export function declareApply(factory: Command): void {
  factory
    .command('apply')
    .description('show the changes that the definition files of a folder make in a factory, ask, and apply them')
    .argument('<folder>', 'folder with factory.yaml')
    .option(
      '--factory <factory>',
      'factory to apply them to, by UID, alias or name; default: the one with their alias or name',
    )
    .option('--dry-run', 'only show; exit with 2 if something would change')
    .option(...strict)
    .option('-y, --yes', 'do not ask')
    .option(...asJson)
    .addHelpText(
      'after',
      `\nThe definition is applied whole or not at all. Each fault is a line: file:line:column: message.\n${planCodes}`,
    )
    .action(async (folder, options) => {
      await applyFactory(processContext(), folder, options);
    });
  factory
    .command('export')
    .description('write the definition files of a factory into a new folder')
    .argument('[folder]', 'new or empty folder')
    .requiredOption('--factory <factory>', factoryHelp)
    .option('--json', 'print the files as JSON instead; needed if a file has a name that other programs obey')
    .action(async (folder, options) => {
      await exportFactory(processContext(), folder, options);
    });
}
