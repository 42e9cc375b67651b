import type { ModelTarget } from '../../models/models.ts';
import type { Endpoint } from './endpoints.ts';
import { member } from './usage/counts.ts';

/** A request that may go to the provider, or a sentence why not. */
export type CheckedRequest =
  | { readonly ok: true; readonly body: Buffer }
  | { readonly ok: false; readonly status: 400 | 403; readonly message: string };

const refuse = (status: 400 | 403, message: string): CheckedRequest => ({ ok: false, status, message });

/** Tiers that cost at most the standard rate, or what the operator has set at the provider (`auto`). */
const cheapTiers = ['auto', 'default', 'standard', 'standard_only', 'flex', 'batch'];

/** What in `body` would spend more than the run's model at the standard rate, or spend it unseen. */
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

/**
 * Reads the request once and writes it again: what was checked is what is sent, where the provider would read a repeated
 * member in another way. Only the run's own model passes. Streams of chat completions are made to tell their usage.
 */
export function checkRequest(
  endpoint: Exclude<Endpoint, { kind: 'models' }>,
  target: ModelTarget,
  bytes: Buffer,
): CheckedRequest {
  let body: unknown;
  try {
    body = JSON.parse(bytes.toString('utf8'));
  } catch {
    return refuse(400, 'the body is not JSON');
  }
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    return refuse(400, 'the body is not a JSON object');
  const named = member(body, 'model');
  if (endpoint.model === undefined && typeof named !== 'string') return refuse(400, 'the body names no model');
  const wanted = endpoint.model ?? String(named);
  const alsoNamed = endpoint.model !== undefined && named !== undefined && named !== `models/${endpoint.model}`;
  if (wanted !== target.providerModel || alsoNamed) {
    const other = JSON.stringify((alsoNamed ? String(named) : wanted).slice(0, 200));
    return refuse(
      403,
      `this run uses the model ${target.providerModel} and may not use ${other}; create a run with config.model_id to use another one`,
    );
  }
  const found = dearer(body, target.providerModel);
  if (found !== undefined)
    return refuse(403, `${found} is not available to runs: it would cost more than the model of the run`);
  if (endpoint.path === '/chat/completions' && member(body, 'stream') === true) {
    const options = member(body, 'stream_options');
    const kept = typeof options === 'object' && options !== null ? options : {};
    body = { ...body, stream_options: { ...kept, include_usage: true } };
  }
  return { ok: true, body: Buffer.from(JSON.stringify(body)) };
}
