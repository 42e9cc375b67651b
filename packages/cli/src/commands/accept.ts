/**
 * The command `accept`. Runs of the caller use contents of other people, such as prompts, only after the caller has accepted them with
 * this command.
 */
import type { AcceptableKind, ContentDifference, WaitingContent } from '@runyard/contract/runs/acceptances';
import { Argument, type Command } from 'commander';
import { connect } from '../api.ts';
import { type Context, processContext } from '../context.ts';
import { Failure } from '../failure.ts';
import type { Column } from '../live/columns.ts';
import { isConfirmed } from '../live/confirm.ts';
import { harmless, harmlessJson } from '../live/harmless.ts';
import { printList } from '../live/list.ts';
import { formatAgo } from '../live/times.ts';
import { wholeNumber } from '../options.ts';

/** Lists the contents that the caller has not accepted yet. */
export async function listWaiting(context: Context, options: { readonly json?: true }): Promise<void> {
  const found = await connect(context).listAcceptances({ query: {} });
  const now = Date.now();
  const columns: Column<WaitingContent>[] = [
    { header: 'KIND', text: ({ kind }) => kind },
    { header: 'UID', text: ({ uid }) => uid },
    { header: 'REVISION', align: 'right', text: ({ revision }) => String(revision) },
    { header: 'BY', text: ({ author }) => author?.display_name ?? author?.uid ?? 'not known' },
    { header: 'WRITTEN', text: ({ written_at }) => formatAgo(written_at, now), raw: ({ written_at }) => written_at },
    { header: 'NAME', flexible: true, text: ({ name }) => name ?? '' },
  ];
  printList(context, { columns, rows: found.waiting, json: found, none: 'nothing waits for your acceptance' }, options);
}

interface AcceptOptions {
  /** Does not ask. */
  readonly yes?: true;
  /** The revision to accept. Default: the current revision. */
  readonly revision?: number;
}

/**
 * Shows the whole difference between the revision that the caller accepted last and the current revision. Asks for confirmation, and
 * accepts the current revision.
 */
export async function accept(
  context: Context,
  kind: AcceptableKind,
  uid: string,
  options: AcceptOptions,
): Promise<void> {
  const client = connect(context);
  const [waiting] = (await client.listAcceptances({ query: { kind, uid } })).waiting;
  if (!waiting)
    throw new Failure(
      `${kind} ${uid} does not wait for your acceptance: you wrote or accepted it, or you may not see it`,
    );
  const { revision } = waiting;
  if (options.revision !== undefined && options.revision !== revision)
    throw new Failure(`the present revision is ${revision}, not ${options.revision}; read the difference first`);
  context.out(`${linesOf(waiting).map(visibleLine).join('\n')}\n`);
  if (!options.yes && !(await isConfirmed('Accept it for your runs? [y/N] ')))
    throw new Failure('nothing was accepted');
  await client.accept({ body: { kind, uid, revision } });
  context.out(`revision ${revision} of ${kind} ${uid} is accepted\n`);
}

/** Returns the revision and its difference as lines. */
function linesOf({ kind, uid, revision, author, accepted_revision, difference = [] }: WaitingContent): string[] {
  const who = author ? `${author.display_name ?? author.type} (${author.uid})` : 'an unknown author';
  const since =
    accepted_revision === undefined ? 'You accepted none before' : `You accepted revision ${accepted_revision}`;
  return [`Revision ${revision} of ${kind} ${uid}, by ${who}. ${since}:`, ...difference.flatMap(linesOfMember)];
}

const linesOfMember = ({ path, before, after }: ContentDifference): string[] => [
  path,
  ...textsOf(before).map((text) => `- ${text}`),
  ...textsOf(after).map((text) => `+ ${text}`),
];

/**
 * Returns the line. If the line has characters that a terminal would not show, replaces these characters by escapes, because the person
 * must see the whole line.
 */
const visibleLine = (line: string): string => (harmless(line) === line ? line : harmlessJson(line).slice(1, -1));

/** Returns the lines in which a value is shown: one for each item of a list, and one for each line of a text. */
function textsOf(value: unknown): string[] {
  if (value === undefined || value === null) return [];
  if (typeof value === 'string') return value.split('\n');
  return Array.isArray(value) ? value.flatMap(textsOf) : [harmlessJson(value)];
}

/**
 * The kinds of contents, with the same names as in the contract. The names are repeated here, because loading the contract's schemas would
 * delay every command.
 */
const kinds = [
  'environment',
  'agent_identity',
  'schedule',
  'automation',
  'definition',
  'mcp_server',
  'worker_pool',
  'conversation',
] as const;

/** Declares the command `accept`. */
export function declareAccept(command: Command): void {
  command
    .addArgument(new Argument('[kind]', 'kind of the content').choices(kinds))
    .argument('[uid]', 'the UID; for a definition, the UID of the factory; for a conversation, its id')
    .option('--revision <number>', 'only this revision (default: the present revision)', wholeNumber)
    .option('--yes', 'do not ask')
    .option('--json', 'print the list as JSON')
    .action(async (kind, uid, { json, ...options }) => {
      if (kind === undefined) return await listWaiting(processContext(), json ? { json } : {});
      if (uid === undefined) return command.error("error: missing required argument 'uid'");
      await accept(processContext(), kind, uid, options);
    });
}
