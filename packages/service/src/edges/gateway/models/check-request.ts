import { isUtf8 } from 'node:buffer';
import type { ProviderTool } from '@runyard/contract/environments/provider-tool-names';
import { type Span, scanJson } from '../../../platform/bodies/scan-json.ts';
import type { ModelTarget } from '../../../team/models/models.ts';
import { type Endpoint, rulesOf } from './endpoints.ts';
import { answersOf, dearer } from './requests/cost-members.ts';
import { type Judgement, judgeContent, judgeMember, judgeTools, refusalOf } from './requests/judge.ts';
import type { RequestRules } from './requests/rules.ts';
import { member } from './usage/counts.ts';

/** A request that may go to the provider, or a sentence with the reason why the request is refused. */
export type CheckedRequest =
  | {
      readonly ok: true;
      /** The bytes of the request's body, in pieces. */
      readonly body: readonly Buffer[];
      /** The same body without `stream_options`, which some servers refuse. Absent if `body` has no `stream_options`. */
      readonly plainBody?: readonly Buffer[];
      /** Members and tools that were removed, because the gateway does not know them. */
      readonly removed: readonly string[];
      /** Tools of the provider that this request may use outside of the sandbox. */
      readonly tools: ReadonlySet<ProviderTool>;
      /** Number of alternative answers that the request asks the model for. */
      readonly answers: number;
    }
  | { readonly ok: false; readonly status: 400 | 403; readonly message: string };

const refuse = (status: 400 | 403, message: string): CheckedRequest => ({ ok: false, status, message });

/** Largest total size of all members except messages. This is enough for the schemas of a few hundred tools. */
const maxReadBytes = 4 * 1024 * 1024;
const maxMembers = 1000;
/** 100 levels are enough: a tool's schema has a few dozen levels, and providers also refuse deeper values. */
const bounds = { maxValues: 300_000, maxDepth: 100, uniqueNames: true } as const;

const faults = {
  not_json: 'the body is not JSON',
  too_many_values: `the body holds more than ${bounds.maxValues} values`,
  too_deep: `the body nests deeper than ${bounds.maxDepth} levels`,
  repeated_name: 'an object in the body has two members of the same name',
} as const;

interface OpenBody {
  readonly members: ReadonlyMap<string, Span>;
  /** All members except messages. */
  readonly values: Record<string, unknown>;
}

const valueAt = (bytes: Buffer, { start, end }: Span): unknown => JSON.parse(bytes.toString('utf8', start, end));

/**
 * Returns the members of the body by name, and the values of all members except messages. If the body cannot be read, returns a sentence
 * with the reason.
 */
async function openBody(bytes: Buffer, { content }: RequestRules): Promise<OpenBody | string> {
  if (!isUtf8(bytes)) return faults.not_json;
  const scanned = await scanJson(bytes, bounds);
  if (scanned.kind !== 'json') return faults[scanned.kind];
  const { members } = scanned;
  if (members === undefined) return 'the body is not a JSON object';
  if (members.size > maxMembers) return `the body has more than ${maxMembers} members`;
  const read = [...members].filter(([name]) => !content.has(name));
  if (read.reduce((sum, [, { start, end }]) => sum + end - start, 0) > maxReadBytes)
    return `the members of the request other than its messages are larger than ${maxReadBytes / 1024 / 1024} MB`;
  return { members, values: Object.fromEntries(read.map(([name, span]) => [name, valueAt(bytes, span)])) };
}

/** Returns the body for the provider. Messages are sent as the bytes that arrived. All other members are serialized again, each only
 * once. */
function writeBody(bytes: Buffer, { members, values }: OpenBody, { content }: RequestRules): Buffer[] {
  const parts: Buffer[] = [];
  let text = '{';
  const write = (name: string): void => {
    text += `${text === '{' && parts.length === 0 ? '' : ','}${JSON.stringify(name)}:`;
  };
  for (const [name, { start, end }] of members) {
    if (!content.has(name)) continue;
    write(name);
    parts.push(Buffer.from(text), bytes.subarray(start, end));
    text = '';
  }
  for (const [name, value] of Object.entries(values)) {
    write(name);
    text += JSON.stringify(value);
  }
  return [...parts, Buffer.from(`${text}}`)];
}

/**
 * Checks all parts of the body, removes the members that the rules do not know, and returns the names of the removed members.
 */
function judgeBody(judgement: Judgement, rules: RequestRules, bytes: Buffer, { members, values }: OpenBody): string[] {
  const removed: string[] = [];
  for (const [name, value] of Object.entries(values)) {
    if (rules.members.has(name)) continue;
    const stays = judgeMember(judgement, rules, name, value);
    if (stays === true) continue;
    delete values[name];
    if (stays === 'unknown') removed.push(name);
  }
  const { tools } = values;
  if (tools !== undefined && tools !== null) {
    const judged = judgeTools(judgement, rules, Array.isArray(tools) ? tools : [tools]);
    if (judged.removed.length > 0) values.tools = judged.kept;
    if (judged.kept.length === 0 && judged.removed.length > 0) delete values.tools;
    removed.push(...judged.removed);
  }
  for (const [name, span] of members)
    if (rules.content.has(name)) judgeContent(judgement, rules, valueAt(bytes, span), name);
  return removed;
}

/** Models and provider tools that a request may use. */
export interface RequestRights {
  /** Names of the models that the request may use; error messages show the first. Default: only `target.providerModel`. */
  readonly names?: readonly string[];
  /** Default: none. */
  readonly providerTools?: readonly ProviderTool[];
}

/**
 * Checks a request and writes it again, so that the provider gets exactly the checked values. Without this, a provider that treats repeated
 * members differently could read other values. Members and tools that the protocol's rules do not know are removed; actions of the provider
 * outside of the sandbox are refused unless `providerTools` allows them. The request is written for `target`. Streams of chat completions
 * are changed to report their usage, and answers of OpenAI are not stored.
 */
export async function checkRequest(
  endpoint: Exclude<Endpoint, { kind: 'models' }>,
  target: ModelTarget,
  bytes: Buffer,
  { names = [target.providerModel], providerTools = [] }: RequestRights = {},
): Promise<CheckedRequest> {
  const rules = rulesOf(endpoint);
  const opened = await openBody(bytes, rules);
  if (typeof opened === 'string') return refuse(400, opened);
  const { values } = opened;
  const named = member(values, 'model');
  if (endpoint.model === undefined && typeof named !== 'string') return refuse(400, 'the body names no model');
  const wanted = endpoint.model ?? String(named);
  const alsoNamed = endpoint.model !== undefined && named !== undefined && named !== `models/${endpoint.model}`;
  if (!names.includes(wanted) || alsoNamed) {
    const other = JSON.stringify((alsoNamed ? String(named) : wanted).slice(0, 200));
    return refuse(
      403,
      `this run uses the model ${names[0] ?? target.providerModel} and may not use ${other}; create a run with config.model_id to use another one`,
    );
  }
  const never = dearer(values, wanted);
  const judgement: Judgement = { uses: [], ...(never === undefined ? {} : { never }) };
  const removed = judgeBody(judgement, rules, bytes, opened);
  const refusal = refusalOf(judgement, providerTools);
  if (refusal !== undefined) return refuse(403, refusal);
  const answers = answersOf(values);
  if (answers === undefined)
    return refuse(400, 'the number of answers (n, candidateCount, best_of) must be a whole number of at least 1');
  if (endpoint.protocol === 'openai-chat' && member(values, 'stream') === true) {
    const options = member(values, 'stream_options');
    const given = typeof options === 'object' && options !== null ? options : {};
    values.stream_options = { ...given, include_usage: true };
  }
  if (endpoint.protocol === 'openai-responses' && !providerTools.includes('stored_content')) values.store = false;
  if (named !== undefined)
    values.model = endpoint.model === undefined ? target.providerModel : `models/${target.providerModel}`;
  const tools = new Set(judgement.uses.map(({ tool }) => tool));
  const { stream_options: options, ...plain } = values;
  return {
    ok: true,
    body: writeBody(bytes, opened, rules),
    ...(options === undefined ? {} : { plainBody: writeBody(bytes, { ...opened, values: plain }, rules) }),
    removed,
    tools,
    answers,
  };
}
