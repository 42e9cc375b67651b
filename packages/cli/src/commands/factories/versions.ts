/** The commands for the kept versions of a definition: `versions`, `diff` and `rollback` of `factory`. */
import { ApiError } from '@runyard/client';
import type { Command } from 'commander';
import type { Context } from '../../context/context.ts';
import { Failure } from '../../exits/failure.ts';
import { asJson, factoryHelp } from '../../input/options.ts';
import { reportWaiting } from '../../route-commands/report-waiting.ts';
import { type Row, request } from '../../route-commands/row.ts';
import { connect } from '../../service/connect.ts';
import { contextAndFactory, idOf } from '../../service/named.ts';
import { isConfirmed } from '../../terminal/confirm.ts';
import { harmlessJson } from '../../terminal/harmless.ts';
import { planLines } from './plan-lines.ts';
import { isSame, printFaults, showPlan, throwForPlan } from './print-plan.ts';

interface RollbackOptions {
  readonly dryRun?: true;
  readonly yes?: true;
  readonly json?: true;
}

/** Returns the number of a version. @throws Failure with exit code 2 */
function versionOf(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new Failure(`a version is a whole number, not ${JSON.stringify(text)}`, 2);
  return Number(text);
}

/**
 * Shows the changes that a rollback would make, asks for confirmation, and applies the earlier version.
 * @throws Failure with exit code 1 if its files have faults now, or nobody confirms; 2 if a dry run finds changes
 */
export async function rollBackFactory(
  context: Context,
  factoryUid: string,
  version: string,
  { dryRun, yes, json }: RollbackOptions,
  confirm = isConfirmed,
): Promise<void> {
  const client = connect(context);
  const send = async (more: { readonly dry_run: boolean; readonly expected_version?: number }) => {
    try {
      return await client.rollBackDefinition({
        params: { factoryUid },
        body: { version: versionOf(version), ...more },
      });
    } catch (error) {
      throw error instanceof ApiError && error.status === 422 ? printFaults(context, '', error.problem.errors) : error;
    }
  };
  const plan = await send({ dry_run: true });
  if (!json) showPlan(context, '', plan, dryRun);
  if (dryRun || isSame(plan)) {
    if (json) context.out(`${harmlessJson(plan, 2)}\n`);
    return throwForPlan(plan, { dryRun });
  }
  if (!yes && !(await confirm())) throw new Failure('nothing was applied');
  const applied = await send({ dry_run: false, expected_version: plan.version });
  context.out(
    json
      ? `${harmlessJson(applied, 2)}\n`
      : `version ${applied.version} is applied, with the files of version ${version}\n`,
  );
  if (!json) reportWaiting(context, applied.waiting);
}

/** Declares `rollback` of `factory`. */
function declareRollback(factory: Command): void {
  factory
    .command('rollback')
    .description('show what changes if an earlier version of the definition is applied again, ask, and apply it')
    .argument('<uid>', factoryHelp)
    .argument('<version>', 'version to go back to')
    .option('--dry-run', 'only show; exit with 2 if something would change')
    .option('-y, --yes', 'do not ask')
    .option(...asJson)
    .action(async (uid, version, options) => rollBackFactory(...(await contextAndFactory(uid)), version, options));
}

const factory = { usage: '<uid>', help: factoryHelp, find: idOf.factory };

/** The rows of the versions. */
export const versionRows: readonly Row[] = [
  request('listDefinitionVersions', 'versions', 'list the versions of the definition of a factory', {
    arguments: [factory],
    list: {
      of: 'versions',
      columns: [
        { header: 'VERSION', text: ({ version }) => String(version) },
        { header: 'APPLIED', ago: ({ applied_at }) => applied_at },
        { header: 'COMMIT', text: ({ commit }) => commit?.slice(0, 12) ?? '' },
        {
          header: 'BY',
          flexible: true,
          text: ({ applied_by: by, rolled_back_to: to, is_kept }) =>
            [
              by.display_name ?? by.uid,
              ...(to ? [`(rollback to ${to})`] : []),
              ...(is_kept ? [] : ['(not kept)']),
            ].join(' '),
        },
      ],
      none: 'no definition was applied; apply one with: bin/runyard factory apply FOLDER',
    },
  }),
  request('compareDefinitionVersions', 'diff', 'show the changes from one version of a definition to another', {
    arguments: [factory, { usage: '<version>', help: 'version after the changes' }],
    flags: { '--from <version>': 'from' },
    orJson: true,
    lines: ({ changes }) => (changes.length === 0 ? 'no differences' : planLines(changes)),
  }),
  declareRollback,
];
