import { isUtf8 } from 'node:buffer';
import { type Span, scanJson } from '../../../platform/bodies/scan-json.ts';
import type { ModelTarget } from '../../../team/models/models.ts';
import type { Endpoint } from './endpoints.ts';
import { member } from './usage/counts.ts';

/** A request that may go to the provider, or a sentence that says why not. */
export type CheckedRequest =
  /** `body`: its bytes, in pieces. */
  | { readonly ok: true; readonly body: readonly Buffer[] }
  | { readonly ok: false; readonly status: 400 | 403; readonly message: string };

const refuse = (status: 400 | 403, message: string): CheckedRequest => ({ ok: false, status, message });

/** Tiers that cost at most the standard rate, or what the operator has set at the provider (`auto`). */
const cheapTiers = ['auto', 'default', 'standard', 'standard_only', 'flex', 'batch'];

/** Finds the member of `body` that would cost more than the run's model at the standard rate, or that would hide its cost. */
function dearer(body: unknown, providerModel: string): string | undefined {
  for (const name of ['service_tier', 'serviceTier']) {
    const tier = member(body, name);
    if (typeof tier === 'string' && !cheapTiers.includes(tier.toLowerCase())) return `${name} ${JSON.stringify(tier)}`;
  }
  const speed = member(body, 'speed');
  if (speed !== undefined && speed !== null && speed !== 'standard') return 'speed';
  if (member(body, 'background') === true) return 'background';
  const fallbacks = member(body, 'fallbacks');
  if (fallbacks !== undefined && fallbacks !== null) return 'fallbacks';
  const tools = member(body, 'tools');
  for (const tool of Array.isArray(tools) ? tools : []) {
    const model = member(tool, 'model');
    if (model !== undefined && model !== providerModel) return 'a tool with another model';
  }
  return undefined;
}

/** Members that are read; all others are forwarded unchanged. */
const readMembers: ReadonlySet<string> = new Set([
  ...['model', 'service_tier', 'serviceTier', 'speed', 'background', 'fallbacks', 'tools', 'stream', 'stream_options'],
]);
/** Largest size of the members that are read together: the schemas of a few hundred tools. */
const maxReadBytes = 4 * 1024 * 1024;
const maxMembers = 1000;
/** A tool's schema or an image has a few dozen levels; providers refuse deeper ones too. */
const bounds = { maxValues: 300_000, maxDepth: 100 } as const;

const faults = {
  not_json: 'the body is not JSON',
  too_many_values: `the body holds more than ${bounds.maxValues} values`,
  too_deep: `the body nests deeper than ${bounds.maxDepth} levels`,
} as const;

/** Returns the members of the body by name, and the values of those that are read; or a sentence that says why they cannot be read. */
async function openBody(
  bytes: Buffer,
): Promise<{ readonly values: Record<string, unknown>; readonly members: ReadonlyMap<string, Span> } | string> {
  if (!isUtf8(bytes)) return faults.not_json;
  const scanned = await scanJson(bytes, bounds);
  if (scanned.kind !== 'json') return faults[scanned.kind];
  const { members } = scanned;
  if (members === undefined) return 'the body is not a JSON object';
  if (members.size > maxMembers) return `the body has more than ${maxMembers} members`;
  const read = [...members].filter(([name]) => readMembers.has(name));
  if (read.reduce((sum, [, { start, end }]) => sum + end - start, 0) > maxReadBytes)
    return `the tools of the request are larger than ${maxReadBytes / 1024 / 1024} MB`;
  const values = Object.fromEntries(
    read.map(([name, { start, end }]) => [name, JSON.parse(bytes.toString('utf8', start, end)) as unknown]),
  );
  return { values, members };
}

/** Returns the body for the provider: the members that were read are written again, once; the rest is the sender's bytes. */
function writeBody(
  bytes: Buffer,
  members: ReadonlyMap<string, Span>,
  values: Readonly<Record<string, unknown>>,
): Buffer[] {
  const parts: Buffer[] = [];
  let text = '{';
  const write = (name: string): void => {
    text += `${text === '{' && parts.length === 0 ? '' : ','}${JSON.stringify(name)}:`;
  };
  for (const [name, { start, end }] of members) {
    if (Object.hasOwn(values, name)) continue;
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
 * Checks a request without parsing its values, of which there may be millions, and writes it again, so that the provider gets what was
 * checked even if it treats repeated members differently. Only the models of `names` are accepted, by default that of `target`, and the
 * request is written for `target`. Streams of chat completions are changed to report their usage.
 */
export async function checkRequest(
  endpoint: Exclude<Endpoint, { kind: 'models' }>,
  target: ModelTarget,
  bytes: Buffer,
  names: readonly string[] = [target.providerModel],
): Promise<CheckedRequest> {
  const opened = await openBody(bytes);
  if (typeof opened === 'string') return refuse(400, opened);
  const { members, values } = opened;
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
  const found = dearer(values, wanted);
  if (found !== undefined)
    return refuse(403, `${found} is not available to runs: it would cost more than the model of the run`);
  if (endpoint.path === '/chat/completions' && member(values, 'stream') === true) {
    const options = member(values, 'stream_options');
    const given = typeof options === 'object' && options !== null ? options : {};
    values.stream_options = { ...given, include_usage: true };
  }
  if (named !== undefined)
    values.model = endpoint.model === undefined ? target.providerModel : `models/${target.providerModel}`;
  return { ok: true, body: writeBody(bytes, members, values) };
}
