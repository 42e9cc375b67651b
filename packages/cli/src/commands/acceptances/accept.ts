/**
 * The command `accept`. Runs of the caller use contents of other people, such as prompts, only after the caller has accepted them with
 * this command.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type {
  AcceptableKind,
  ContentDifference,
  ExecutorPreview,
  WaitingContent,
} from '@runyard/contract/runs/acceptances';
import type { UserProfile } from '@runyard/contract/wire/profiles';
import { Argument, type Command, Option } from 'commander';
import { type Context, dataPlace, processContext, serviceOrigin } from '../../context/context.ts';
import { Failure } from '../../exits/failure.ts';
import { wholeNumber } from '../../input/options.ts';
import { connect } from '../../service/connect.ts';
import type { Column } from '../../terminal/columns.ts';
import { isConfirmed } from '../../terminal/confirm.ts';
import { harmless, harmlessJson } from '../../terminal/harmless.ts';
import { printList } from '../../terminal/list.ts';
import { formatAgo } from '../../terminal/times.ts';
import { requireDatabase } from '../installation/backup.ts';

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

/** A revision that a preview showed. */
type Previewed = Pick<WaitingContent, 'kind' | 'uid' | 'revision'>;

const previewFile = ({ folder }: Context): string => path.join(folder.path, 'accept-preview.json');

/** Returns what the last preview at this service showed to this person: `accept --all` accepts these revisions and no others. */
function readPreviewed(context: Context, personUid: string): Previewed[] {
  try {
    const stored = JSON.parse(readFileSync(previewFile(context), 'utf8'));
    return stored.origin === serviceOrigin(context) && stored.person === personUid ? stored.revisions : [];
  } catch {
    return [];
  }
}

function keepPreviewed(context: Context, personUid: string, revisions: readonly Previewed[]): void {
  mkdirSync(context.folder.path, { recursive: true, mode: 0o700 });
  const stored = { origin: serviceOrigin(context), person: personUid, revisions };
  writeFileSync(previewFile(context), `${JSON.stringify(stored, null, 2)}\n`, { mode: 0o600 });
}

const nameOf = ({ display_name, uid, type }: UserProfile): string => `${display_name ?? type} (${uid ?? 'not known'})`;

/** Returns the lines about one executor. */
function linesOfExecutor({ executor, waiting, starts }: ExecutorPreview): string[] {
  const contents = waiting.map(({ kind, uid, revision, name, authors }) => {
    const by = authors.map(nameOf).join(', ') || 'an unknown author';
    return `  waits: revision ${revision} of ${kind} ${uid}${name === undefined ? '' : ` "${name}"`}, with texts of ${by}`;
  });
  const lost = starts.map(({ kind, uid, name, withheld }) => {
    const rights = withheld.map(({ right, name: secret }) => (secret === undefined ? right : `${right} ${secret}`));
    return `  loses in ${kind} "${name}" (${uid}): ${[...new Set(rights)].join(', ')}`;
  });
  return [nameOf(executor), ...contents, ...lost];
}

const nothingLost = 'nothing waits for an acceptance: every run has all rights of its executor\n';

/**
 * Shows what the runs of each executor lack until texts are accepted, and stores the revisions that wait for the caller, for `accept --all`.
 */
export async function preview(context: Context, options: { readonly json?: true }): Promise<void> {
  const client = connect(context);
  const me = await client.getSession();
  const { executors } = await client.previewAcceptances();
  const own = executors.find(({ executor }) => executor.type === 'user' && executor.uid === me.user.uid);
  const revisions = (own?.waiting ?? []).map(({ kind, uid, revision }) => ({ kind, uid, revision }));
  keepPreviewed(context, me.user.uid, revisions);
  if (options.json) return context.out(`${harmlessJson({ executors })}\n`);
  context.out(
    executors.length === 0 ? nothingLost : `${executors.flatMap(linesOfExecutor).map(visibleLine).join('\n')}\n`,
  );
  if (revisions.length > 0)
    context.report(
      `${revisions.length} of these wait for you: read each with bin/runyard accept KIND UID, or accept all that this preview shows with bin/runyard accept --all`,
    );
}

/** Shows what the executors of all teams would lack after an upgrade to this version. Reads the database itself and changes nothing. */
async function previewBeforeUpgrade(context: Context, options: { readonly json?: true }): Promise<void> {
  requireDatabase(context);
  const { previewUpgrade } = await import('@runyard/service/installation-commands');
  const teams = await previewUpgrade(dataPlace(context)).catch((error: Error) => {
    throw new Failure(error.message);
  });
  if (options.json) return context.out(`${harmlessJson({ teams })}\n`);
  const lines = teams.flatMap(({ uid, name, executors }) =>
    executors.length === 0 ? [] : [`Team ${name} (${uid}):`, ...executors.flatMap(linesOfExecutor)],
  );
  context.out(lines.length === 0 ? nothingLost : `${lines.map(visibleLine).join('\n')}\n`);
}

/** Accepts all revisions that the last preview showed. A content that has a newer revision meanwhile is not accepted. */
export async function acceptAll(context: Context, options: { readonly yes?: true }): Promise<void> {
  const client = connect(context);
  const me = await client.getSession();
  const previewed = readPreviewed(context, me.user.uid);
  if (previewed.length === 0)
    throw new Failure('there is no preview with contents that wait for you; first run: bin/runyard accept --preview');
  const { waiting } = await client.listAcceptances({ query: {} });
  const present = previewed.flatMap(
    (each) => waiting.find(({ kind, uid }) => kind === each.kind && uid === each.uid) ?? [],
  );
  const isPreviewed = ({ kind, uid, revision }: WaitingContent) =>
    previewed.some((each) => each.kind === kind && each.uid === uid && each.revision === revision);
  const [wanted, newer] = [present.filter(isPreviewed), present.filter((each) => !isPreviewed(each))];
  for (const each of wanted) context.out(`${linesOf(each).map(visibleLine).join('\n')}\n`);
  if (wanted.length > 0 && !options.yes && !(await isConfirmed(`Accept these ${wanted.length} for your runs? [y/N] `)))
    throw new Failure('nothing was accepted');
  for (const { kind, uid, revision } of wanted) {
    await client.accept({ body: { kind, uid, revision } });
    context.out(`revision ${revision} of ${kind} ${uid} is accepted\n`);
  }
  if (newer.length === 0) return keepPreviewed(context, me.user.uid, []);
  const names = newer.map(({ kind, uid, revision }) => `${kind} ${uid} (revision ${revision})`);
  throw new Failure(
    `changed since the preview, and not accepted: ${names.join(', ')}; run bin/runyard accept --preview again`,
  );
}

/** Returns the revision and its difference as lines. */
function linesOf({ kind, uid, revision, authors, accepted_revision, difference = [] }: WaitingContent): string[] {
  const who = authors.map(nameOf).join(', ') || 'an unknown author';
  const since =
    accepted_revision === undefined ? 'You accepted none before' : `Compared with revision ${accepted_revision}`;
  return [
    `Revision ${revision} of ${kind} ${uid}, with texts of ${who}. ${since}:`,
    ...difference.flatMap(linesOfMember),
  ];
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
    .option('--preview', 'show what the runs of each executor lack until texts are accepted')
    .option(
      '--before-upgrade',
      'with --preview: as after an upgrade of the installation to this version; changes nothing',
    )
    .addOption(new Option('--all', 'accept all revisions that the last --preview showed').conflicts('preview'))
    .option('--yes', 'do not ask')
    .option('--json', 'print the list as JSON')
    .action(async (kind, uid, { json, preview: isPreview, beforeUpgrade, all, ...options }) => {
      if (kind !== undefined && (isPreview || all)) return command.error('error: --preview and --all name no content');
      if (beforeUpgrade && !isPreview) return command.error('error: --before-upgrade belongs to --preview');
      if (beforeUpgrade) return await previewBeforeUpgrade(processContext(), json ? { json } : {});
      if (isPreview) return await preview(processContext(), json ? { json } : {});
      if (all) return await acceptAll(processContext(), options.yes ? { yes: true } : {});
      if (kind === undefined) return await listWaiting(processContext(), json ? { json } : {});
      if (uid === undefined) return command.error("error: missing required argument 'uid'");
      await accept(processContext(), kind, uid, options);
    });
}
