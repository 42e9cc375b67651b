import type { Client } from '@runyard/client';
import { clientRoutes } from '@runyard/client/routes/table';
import type { WaitingAfterChange } from '@runyard/contract/runs/acceptances';
import type { Context } from '../context/context.ts';
import { Failure } from '../exits/failure.ts';
import { connect, connectWithoutKey } from '../service/connect.ts';
import { harmless, harmlessJson } from '../terminal/harmless.ts';
import { type ListColumn, printList } from '../terminal/list.ts';
import { reportWaiting } from './report-waiting.ts';
import type { Answer, Flag, Given, Members, RoutedCommand, RowRoute } from './row.ts';

/** The words that a person typed: the arguments in their order, and the flags of the row with their values. */
interface Typed {
  readonly texts: readonly (string | readonly string[] | undefined)[];
  readonly flags: readonly { readonly flag: Flag; readonly value: unknown }[];
  readonly options: Readonly<Record<string, unknown>>;
  readonly json: boolean;
}

/** Removes escape sequences and line breaks, because the text may contain words of other people. */
const oneLine = (text: string): string => harmless(text).replaceAll('\n', ' ');

/** Sends the request of a command, and prints the answer. */
export async function sendRequest<R extends RowRoute, K extends keyof Answer<R>>(
  context: Context,
  described: RoutedCommand<R, K>,
  typed: Typed,
): Promise<void> {
  const client = described.anonymous ? connectWithoutKey(context) : connect(context);
  const params = await paramsOf(client, described, typed);
  const typedMembers = membersOf(described, typed);
  const members =
    (typedMembers && (await described.complete?.(typedMembers, { client, params, options: typed.options }))) ??
    typedMembers;
  const place = /^(?:GET|DELETE) /.test(clientRoutes[described.route]) ? 'query' : 'body';
  const send = client[described.route] as (input: object) => Promise<Answer<R>>;
  const ask = (sent: Members | undefined): Promise<Answer<R>> =>
    send({ params, ...(sent === undefined ? {} : { [place]: sent }) });
  const { list } = described;
  const answer = list?.allPages
    ? await allPages<Answer<R>, K>((page) => ask({ ...members, ...page }), list.of)
    : await ask(members);
  print(context, described, { answer, given: { ...textsByName(described, typed), ...params }, json: typed.json });
}

/** Returns an answer with the rows of all pages. */
async function allPages<A, K extends keyof A>(ask: (page: Members) => Promise<A>, of: K): Promise<A> {
  const rows: unknown[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await ask({ limit: 100, ...(cursor === undefined ? {} : { cursor }) });
    rows.push(...(page[of] as readonly unknown[]));
    cursor = (page as { readonly page_info?: { readonly next_cursor?: string } }).page_info?.next_cursor;
    if (cursor === undefined) return { [of]: rows } as A;
  }
}

async function paramsOf<R extends RowRoute, K extends keyof Answer<R>>(
  client: Client,
  { route, params, arguments: given = [] }: RoutedCommand<R, K>,
  { texts }: Typed,
): Promise<Given> {
  const names = [...clientRoutes[route].matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
  const found: Record<string, string> = { ...(await params?.(client)) };
  for (const [index, { member, find }] of given.entries()) {
    const text = texts[index];
    if (member !== undefined || typeof text !== 'string') continue;
    const value = find === undefined ? text : await find(client, text);
    const next = names.find((name) => !Object.hasOwn(found, name)) ?? '';
    Object.assign(found, typeof value === 'string' ? { [next]: value } : value);
  }
  return found;
}

/** Returns the query or the body. Returns undefined if the command sets no member. */
function membersOf<R extends RowRoute, K extends keyof Answer<R>>(
  { arguments: given = [], flags, fixed, needsFlag }: RoutedCommand<R, K>,
  typed: Typed,
): Members | undefined {
  const ofBody = given.map((argument, index) => ({ ...argument, text: typed.texts[index] }));
  const ofMembers = ofBody.filter(({ member }) => member !== undefined);
  if (ofMembers.length === 0 && flags === undefined && fixed === undefined) return undefined;
  const body: Record<string, unknown> = { ...fixed };
  for (const { member = '', text, read } of ofMembers) {
    const value = read !== undefined && typeof text === 'string' ? read(text) : text;
    if (member === '*') return value as Members;
    if (value !== undefined) body[member] = value;
  }
  if (needsFlag !== undefined && typed.flags.every(({ value }) => value === undefined)) throw new Failure(needsFlag, 2);
  for (const { flag, value } of typed.flags) {
    const set = memberValue(flag, value);
    if (set !== undefined) body[flag.member] = set;
  }
  return body;
}

function memberValue(flag: Flag, value: unknown): unknown {
  if (flag.read !== undefined) return flag.read(value as never);
  if (value === false) return null;
  return flag.value !== undefined && value !== undefined ? flag.value : value;
}

function textsByName<R extends RowRoute, K extends keyof Answer<R>>(
  { arguments: given = [] }: RoutedCommand<R, K>,
  { texts }: Typed,
): Given {
  const pairs = given.map(({ usage }, index) => [usage.replaceAll(/[<>[\].]/g, ''), String(texts[index] ?? '')]);
  return Object.fromEntries(pairs);
}

function print<R extends RowRoute, K extends keyof Answer<R>>(
  context: Context,
  { list, lines, notes, notesWithJson }: RoutedCommand<R, K>,
  { answer, given, json }: { readonly answer: Answer<R>; readonly given: Given; readonly json: boolean },
): void {
  const isJson = json || (list === undefined && lines === undefined);
  if (isJson) context.out(`${harmlessJson(answer)}\n`);
  else if (list !== undefined) {
    const none = typeof list.none === 'string' ? list.none : list.none(given);
    const columns = list.columns as readonly ListColumn<never>[];
    printList(context, { columns, rows: answer[list.of] as readonly never[], json: answer, none }, {});
  } else for (const line of [lines?.(answer, given) ?? []].flat()) context.out(`${oneLine(line)}\n`);
  if (isJson && !notesWithJson) return;
  for (const line of [notes?.(answer, given) ?? []].flat()) context.report(oneLine(line));
  reportWaiting(context, (answer as { readonly waiting?: WaitingAfterChange }).waiting);
}
