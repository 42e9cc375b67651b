/** Manages the repository with a factory's definition. */
import type { FactorySource, FactorySync, SetFactorySourceRequest } from '@runyard/contract/factories/factory-sources';
import { type Command, InvalidArgumentError } from 'commander';
import type { Context } from '../../context/context.ts';
import { Failure } from '../../exits/failure.ts';
import { asJson, factoryHelp } from '../../input/options.ts';
import { connect } from '../../service/connect.ts';
import { contextAndFactory } from '../../service/named.ts';
import { isConfirmed } from '../../terminal/confirm.ts';
import { harmlessJson, harmlessLine } from '../../terminal/harmless.ts';
import { planCodes, printFaults, showPlan, strict, throwForPlan } from './print-plan.ts';
import { variableOption, variablesOf } from './variables.ts';

type Json = { readonly json?: true };

interface SetOptions extends Json {
  readonly branch?: string;
  readonly folder?: string;
  readonly every?: number;
  readonly var?: readonly string[];
  readonly dryRun?: true;
  readonly strict?: true;
  readonly yes?: true;
}

/**
 * Shows the changes that the definition in a repository would make in a factory, asks for confirmation, and sets the repository as the
 * source of the factory. @throws Failure with exit code 1 if the repository cannot be read or the definition has faults; 2 if there is
 * no terminal for the question
 */
export async function setFactorySource(
  context: Context,
  factoryUid: string,
  repository: string,
  { branch, folder, every, var: pairs, dryRun, strict, yes, json }: SetOptions,
): Promise<void> {
  const client = connect(context);
  const wanted: Omit<SetFactorySourceRequest, 'dry_run' | 'poll_interval_seconds'> & {
    poll_interval_seconds?: number;
  } = {
    repository,
    ...(branch === undefined ? {} : { branch }),
    ...(folder === undefined ? {} : { folder }),
    ...(every === undefined ? {} : { poll_interval_seconds: every }),
    ...(pairs === undefined ? {} : { variables: variablesOf(pairs) }),
  };
  const put = (more: Pick<SetFactorySourceRequest, 'dry_run' | 'expected_commit'>) =>
    client.setFactorySource({ params: { factoryUid }, body: { ...wanted, ...more } });
  const plan = await put({ dry_run: true });
  if (dryRun && json) context.out(`${harmlessJson(plan, 2)}\n`);
  else if (!json) showPlan(context, folder ?? '', plan.sync, dryRun);
  throwUnlessApplied(context, folder ?? '', plan.sync);
  if (dryRun) return throwForPlan(plan.sync, { dryRun, strict });
  if (!yes && !(await isConfirmed())) throw new Failure('the source was not set');
  // Sends the commit of the confirmed plan, so that the service changes nothing if the repository has a newer commit.
  const { commit } = plan.sync;
  const set = await put({ dry_run: false, ...(commit === undefined ? {} : { expected_commit: commit }) });
  if (json) context.out(`${harmlessJson(set, 2)}\n`);
  throwUnlessApplied(context, folder ?? '', set.sync);
  if (!json) context.out(`${appliedLine(set.sync)}\n`);
  throwForPlan(set.sync, { strict });
}

/** Shows the source of a factory and its last sync. */
export async function showFactorySource(context: Context, factoryUid: string, { json }: Json): Promise<void> {
  const source = await connect(context).getFactorySource({ params: { factoryUid } });
  if (json) return context.out(`${harmlessJson(source, 2)}\n`);
  for (const line of sourceLines(source)) context.out(`${line}\n`);
}

/** Syncs a factory with its repository now. With `dryRun`, only shows the changes. @throws Failure if the sync failed */
export async function syncFactorySource(
  context: Context,
  factoryUid: string,
  { dryRun, strict, json }: Json & { readonly dryRun?: true; readonly strict?: true },
): Promise<void> {
  const client = connect(context);
  const sync = await client.syncFactorySource({ params: { factoryUid }, body: { dry_run: dryRun ?? false } });
  if (json) context.out(`${harmlessJson(sync, 2)}\n`);
  else showPlan(context, '', sync, dryRun);
  throwUnlessApplied(context, '', sync);
  if (!json && !dryRun) context.out(`${appliedLine(sync)}\n`);
  throwForPlan(sync, { dryRun, strict });
}

/** Removes the repository as the source of a factory. The factory keeps its definition. */
export async function removeFactorySource(context: Context, factoryUid: string): Promise<void> {
  await connect(context).deleteFactorySource({ params: { factoryUid } });
  context.out(`${harmlessLine(factoryUid, 100)} has no source now; its definition stays\n`);
}

function throwUnlessApplied(context: Context, folder: string, { outcome, message, errors }: FactorySync): void {
  if (outcome === 'applied') return;
  throw outcome === 'faulty'
    ? printFaults(context, folder, errors)
    : new Failure(harmlessLine(message ?? `the sync ended as ${outcome}`, 1_000));
}

const appliedLine = ({ version, commit }: FactorySync): string =>
  harmlessLine(`version ${version ?? 0} is applied, of the commit ${commit ?? ''}`, 200);

function sourceLines(source: FactorySource): string[] {
  const { repository, branch, folder, poll_interval_seconds, applied_commit, checked_at, last_sync } = source;
  const rows: [string, string | undefined][] = [
    ['repository', repository],
    ['branch', branch ?? 'the default branch'],
    ['folder', folder ?? 'the root'],
    ['looked at', `every ${poll_interval_seconds} seconds; last ${checked_at ?? 'never'}`],
    ...Object.entries(source.variables).map(([name, value]): [string, string] => ['variable', `${name} = ${value}`]),
    ['set by', source.set_by.display_name ?? source.set_by.uid],
    ['in force', applied_commit ?? 'no commit'],
    ['last sync', last_sync && `${last_sync.outcome} at ${last_sync.at}, commit ${last_sync.commit ?? 'not found'}`],
    ['', last_sync?.message],
    ...(last_sync?.errors ?? []).map((fault): [string, string] => [
      '',
      `${fault.path}:${fault.line}:${fault.column}: ${fault.message}`,
    ]),
  ];
  return rows.flatMap(([name, value]) => (value === undefined ? [] : [name.padEnd(12) + harmlessLine(value, 1_000)]));
}

function toSeconds(text: string): number {
  if (!/^\d{1,6}$/.test(text)) throw new InvalidArgumentError('It must be a whole number of seconds.');
  return Number(text);
}

/** Declares `source` of `factory`. */
export function declareSource(factory: Command): void {
  const source = factory.command('source').description("manage the git repository with a factory's definition");
  source
    .command('set')
    .description(
      'show the changes that a repository would make in a factory, ask for confirmation, and let the factory follow the repository',
    )
    .argument('<uid>', factoryHelp)
    .argument('<repository>', 'owner/repo on the code host of the service, or its URL there')
    .option('--branch <name>', 'branch; default: the default branch')
    .option('--folder <path>', 'folder with factory.yaml; default: the root')
    .option('--every <seconds>', 'seconds between two looks at the branch, 60 to 86400; default 300', toSeconds)
    .option(...variableOption)
    .option('--dry-run', 'only show the changes; exit with 2 if there are any')
    .option(...strict)
    .option('-y, --yes', 'do not ask')
    .option(...asJson)
    .addHelpText('after', planCodes)
    .action(async (uid, repository, options) => {
      await setFactorySource(...(await contextAndFactory(uid)), repository, options);
    });
  source
    .command('show')
    .description('show the repository of a factory, the applied commit, and the last sync with its faults')
    .argument('<uid>', factoryHelp)
    .option(...asJson)
    .action(async (uid, options) => {
      await showFactorySource(...(await contextAndFactory(uid)), options);
    });
  source
    .command('sync')
    .description('apply the present commit now, and revert changes that were made without files')
    .argument('<uid>', factoryHelp)
    .option('--dry-run', 'only show the changes; exit with 2 if there are any')
    .option(...strict)
    .option(...asJson)
    .addHelpText('after', planCodes)
    .action(async (uid, options) => {
      await syncFactorySource(...(await contextAndFactory(uid)), options);
    });
  source
    .command('remove')
    .description('detach a factory from its repository; its definition stays')
    .argument('<uid>', factoryHelp)
    .action(async (uid) => {
      await removeFactorySource(...(await contextAndFactory(uid)));
    });
}
