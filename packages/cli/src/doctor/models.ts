import { z } from 'zod';
import type { Context } from '../context/context.ts';
import { harmlessLine } from '../terminal/harmless.ts';
import type { Finding } from './finding.ts';
import { checkServiceModels, waysToAddModel } from './service-models.ts';

const name = 'models';
/** Longest wait for an answer of a local endpoint. It is long, because a laptop loads even a small model slowly. */
const patienceMs = 30_000;

const providers = [
  ['Anthropic', 'RUNYARD_ANTHROPIC_API_KEY'],
  ['OpenAI', 'RUNYARD_OPENAI_API_KEY'],
  ['Google', 'RUNYARD_GOOGLE_API_KEY'],
] as const;

/**
 * Reports the models of the running service, and how a restart in this environment would change them. If no service runs, reports
 * which providers have a key. Also reports whether the local endpoint of this environment answers and calls tools. Does not show the
 * keys of providers, and does not test whether they are valid.
 */
export async function checkModels(context: Context): Promise<Finding[]> {
  const { RUNYARD_MODEL_BASE_URL: base, RUNYARD_MODEL_KEY: key } = context.settings;
  const [ofService, ofEndpoint] = await Promise.all([
    checkServiceModels(context),
    base === undefined ? [] : checkLocal(base, key).then((finding) => [finding]),
  ]);
  if (ofService === null) return [...ofEnvironment(context, base !== undefined), ...ofEndpoint];
  // Runs use the models of the running service. A problem with the endpoint of this environment is therefore only a note, because the
  // endpoint may be meant for the next start.
  return [...ofService, ...ofEndpoint.map(asNote)];
}

const asNote = (finding: Finding): Finding => ({
  ...finding,
  name: 'own endpoint',
  level: finding.level === 'bad' ? 'note' : finding.level,
});

/** Returns the findings about the models that a start would have, except models of the local endpoint. */
function ofEnvironment(context: Context, hasEndpoint: boolean): Finding[] {
  const configured = providers
    .filter(([, setting]) => context.settings[setting] !== undefined)
    .map(([provider]) => provider);
  const findings: Finding[] = [];
  if (configured.length > 0)
    findings.push({ name, level: 'good', detail: `keys of ${configured.join(', ')} (not tried)` });
  if (findings.length > 0 || hasEndpoint) return findings;
  return [
    {
      name,
      level: 'note',
      detail: 'none: runs use `runbook`, which runs the fenced sh blocks of the prompt and nothing else',
      fix: waysToAddModel,
    },
  ];
}

const ModelList = z.object({ data: z.array(z.object({ id: z.string() })) });
const Completion = z.object({
  choices: z.array(z.object({ message: z.object({ tool_calls: z.array(z.unknown()).nullish() }) })),
});

async function checkLocal(base: string, key: string | undefined): Promise<Finding> {
  const headers = {
    'content-type': 'application/json',
    ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
  };
  const fix = 'start the endpoint, or correct RUNYARD_MODEL_BASE_URL (with its /v1) and RUNYARD_MODEL_KEY';
  let model: string | undefined;
  try {
    const list = await fetch(`${base}/models`, { headers, signal: AbortSignal.timeout(5000), redirect: 'error' });
    if (!list.ok) return { name, level: 'bad', detail: `${base} answered ${list.status} to GET /models`, fix };
    model = ModelList.parse(await list.json()).data[0]?.id;
  } catch (error) {
    return { name, level: 'bad', detail: `${base} does not answer: ${reasonOf(error)}`, fix };
  }
  if (model === undefined)
    return { name, level: 'bad', detail: `${base} has no model`, fix: 'load one there (Ollama: ollama pull qwen3)' };
  const modelName = harmlessLine(model, 80);
  try {
    const answer = await fetch(`${base}/chat/completions`, {
      method: 'POST',
      headers,
      redirect: 'error',
      signal: AbortSignal.timeout(patienceMs),
      body: JSON.stringify({
        model,
        max_tokens: 256,
        messages: [{ role: 'user', content: 'Call the tool "ping" now. Do not answer in words.' }],
        tools: [
          {
            type: 'function',
            function: { name: 'ping', description: 'Answers pong.', parameters: { type: 'object', properties: {} } },
          },
        ],
      }),
    });
    if (!answer.ok)
      return {
        name,
        level: 'note',
        detail: `${base} has ${modelName}, but a request with a tool was answered ${answer.status}`,
      };
    const calls = Completion.parse(await answer.json()).choices[0]?.message.tool_calls?.length ?? 0;
    return calls > 0
      ? { name, level: 'good', detail: `${base}: ${modelName} answers and calls tools` }
      : {
          name,
          level: 'note',
          detail: `${base}: ${modelName} answers but did not call a tool when asked to: an agent cannot work with it`,
          fix: 'name a model that calls tools: RUNYARD_DEFAULT_MODEL=local/…',
        };
  } catch (error) {
    return {
      name,
      level: 'note',
      detail: `${base} has ${modelName}, but a request with a tool failed: ${reasonOf(error)}`,
    };
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return 'it took too long';
  if (error instanceof z.ZodError || error instanceof SyntaxError)
    return 'its answer does not have the format of the OpenAI API';
  return error.cause instanceof Error ? error.cause.message : error.message;
}
