/** Applies the definition of a factory from a folder, and exports a definition into a folder. */
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { ApiError, type Client } from '@runyard/client';
import type { ApplyDefinitionResponse } from '@runyard/contract/factories/factory-definitions';
import type { TextFile } from '@runyard/definitions/stored-files';
import type { Command } from 'commander';
import { type Context, processContext } from '../../context/context.ts';
import { Failure } from '../../exits/failure.ts';
import { asJson, factoryHelp } from '../../input/options.ts';
import { reportWaiting } from '../../route-commands/report-waiting.ts';
import { connect } from '../../service/connect.ts';
import { allFactories, idOf } from '../../service/named.ts';
import { isConfirmed } from '../../terminal/confirm.ts';
import { harmlessJson, harmlessLine } from '../../terminal/harmless.ts';
import { planLines } from './plan-lines.ts';
import { isSame, planCodes, printFaults, showNotices, showPlan, strict, throwForPlan } from './print-plan.ts';
import { validateFactory } from './validate.ts';
import { variableOption, variablesOf } from './variables.ts';

export interface ApplyOptions {
  readonly factory?: string;
  readonly var?: readonly string[];
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
    import('./read-folder.ts'),
  ]);
  const read = readDefinitionFolder(folder);
  const variables = variablesOf(options.var);
  const client = connect(context);
  const named = options.factory === undefined ? undefined : await idOf.factory(client, options.factory);
  // Without the values that the factory keeps, a named factory's definition may only seem to lack values. The service has them.
  const checked = readDefinition(read, { given: variables });
  // `validateFactory` prints the faults and throws.
  if (!checked.ok && named === undefined) return await validateFactory(context, folder, options);
  const files = storedFiles(read);
  const factoryUid = named ?? (checked.ok ? await findFactory(client, checked.definition.factory) : undefined);
  const put = async (more: { readonly dry_run: boolean; readonly expected_version?: number }) => {
    try {
      const body = { files, variables, dry_run: more.dry_run };
      if (factoryUid === undefined) return await client.createFactoryFromFiles({ body });
      return await client.applyFactoryDefinition({ params: { factoryUid }, body: { ...body, ...more } });
    } catch (error) {
      const mayNotApply = error instanceof ApiError && error.status === 403;
      if (mayNotApply && options.dryRun && factoryUid !== undefined)
        return await planOnly(context, client, folder, { factoryUid, files, variables });
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
  const applied = await put({
    dry_run: false,
    ...(factoryUid === undefined ? {} : { expected_version: plan.version }),
  });
  context.out(options.json ? `${harmlessJson(applied, 2)}\n` : `version ${applied.version} is applied\n`);
  if (!options.json) reportWaiting(context, applied.waiting);
  throwForPlan(applied, options);
}

/** Plans with the rights of a reader, for example with a key that is limited to plans. */
async function planOnly(
  context: Context,
  client: Client,
  folder: string,
  { factoryUid, files, variables }: { factoryUid: string; files: TextFile[]; variables: Record<string, string> },
): Promise<ApplyDefinitionResponse> {
  try {
    return await client.planFactoryDefinition({ params: { factoryUid }, body: { files, variables } });
  } catch (error) {
    throw error instanceof ApiError && error.status === 422
      ? printFaults(context, folder, error.problem.errors)
      : error;
  }
}

/**
 * Returns the UID of the factory that has the alias or, if the definition has no alias, the name of the definition. Undefined: there is
 * none, so the apply creates it.
 */
async function findFactory(
  client: Client,
  { name, alias }: { readonly name: string; readonly alias?: string | undefined },
): Promise<string | undefined> {
  const factories = await allFactories(client);
  const ofAlias = factories.filter((factory) => alias !== undefined && factory.alias === alias);
  const [found, ...others] = ofAlias.length > 0 ? ofAlias : factories.filter((factory) => factory.name === name);
  if (!found || others.length === 0) return found?.uid;
  throw new Failure(`several factories are called ${harmlessLine(name, 200)}; name one with --factory UID`);
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
      'factory to apply them to, by UID, alias or name; default: the one with their alias or name, which is created if there is none',
    )
    .option(...variableOption)
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
