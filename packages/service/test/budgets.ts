/** Test support: requests of agents to a model, while a budget limits the cost. */
import { randomUUID } from 'node:crypto';
import type { FakeModels } from '../../../test/fakes/models.ts';
import type { ModelUsage } from '../src/team/usage/model-usage.ts';
import type { TestService } from './service.ts';

export const opus = 'anthropic/claude-opus-5-5';
/** The cost of an answer: 100 input tokens at $4 a million, and 40 output tokens at $20 a million. */
export const answerUsd = 0.0012;
export const answerUsage = { input: 100, output: 40, cacheRead: 0, cacheWrite: 0, reasoning: 0 };

/** Makes every answer of the fake provider cost `answerUsd`. */
export function answerAtFixedCost(fake: FakeModels): void {
  fake.script(() => ({ text: ['Yes.'], usage: answerUsage }));
}

/** Sends one request to the model of a run, through the gateway of a service process. */
export async function askModel(baseUrl: string, runToken: string, more: object = {}) {
  const response = await fetch(`${baseUrl}/api/v1/gateway/anthropic/v1/messages`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${runToken}`,
      'content-type': 'application/json',
      'anthropic-version': '2023-06-01',
    },
    body: JSON.stringify({
      model: 'claude-opus-5-5',
      max_tokens: 100,
      messages: [{ role: 'user', content: 'look' }],
      ...more,
    }),
  });
  return { status: response.status, code: response.headers.get('x-runyard-error-code'), text: await response.text() };
}

/** Returns the state of a run and the reason for this state. */
export async function stateOf(service: TestService, runId: string) {
  const { body } = await service.request<{ state: string; status_message?: { error_code?: string; message: string } }>(
    'GET',
    `/agent/runs/${runId}`,
  );
  return { state: body.state, code: body.status_message?.error_code, message: body.status_message?.message };
}

/** Returns how many requests to models are open, of all runs together. */
export async function openRequests(service: TestService): Promise<number> {
  const [row] = await service.deps.db.query<{ n: number }>('SELECT count(*) AS n FROM open_model_requests');
  return row?.n ?? 0;
}

const someone = { kind: 'user', uid: 'someone' } as const;

/** Returns the usage of a successful request to a model, as the gateway records it. */
export const modelUsage = (
  of: Pick<ModelUsage, 'runId' | 'teamId'> & Partial<ModelUsage>,
  costUsd: number | null = 0.001043,
): ModelUsage => ({
  executionId: randomUUID(),
  ancestorIds: [],
  creator: someone,
  executor: someone,
  environmentId: null,
  automationUid: null,
  factoryUid: null,
  chargedUsd: costUsd ?? 0,
  modelId: opus,
  provider: 'anthropic',
  requestId: randomUUID(),
  inputTokens: 100,
  outputTokens: 30,
  cacheReadTokens: 40,
  cacheWriteTokens: 7,
  costUsd,
  breakdown: costUsd === null ? null : { input: costUsd, output: 0, cacheRead: 0, cacheWrite: 0 },
  toolsUsd: 0,
  isAnswer: true,
  status: 200,
  durationMs: 12,
  ...of,
});
