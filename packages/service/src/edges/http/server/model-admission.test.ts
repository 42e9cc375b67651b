import { expect, test } from 'vitest';
import { startFakeModels } from '../../../../../../test/fakes/models.ts';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { openTestService } from '../../../../test/service.ts';
import type { Admission, AdmitModelRequest } from '../../gateway/models/admission.ts';

let admission: Admission | Error = { ok: true };
const asked: Parameters<AdmitModelRequest>[0][] = [];

const fake = closeAtEnd(await startFakeModels());
const service = await openTestService({
  env: fake.env,
  admitModelRequest: async (holder) => {
    asked.push(holder);
    if (admission instanceof Error) throw admission;
    return admission;
  },
});

const modelId = 'anthropic/claude-opus-5-5';

/** Sends a request of a run to its model, through the gateway of the whole service. */
async function askModel() {
  const { runId, runToken } = await service.startExecution({ config: { model_id: modelId } });
  const answer = await service.request<{ error: { message: string } }>('POST', '/gateway/anthropic/v1/messages', {
    key: runToken,
    headers: { 'anthropic-version': '2023-06-01' },
    body: { model: 'claude-opus-5-5', max_tokens: 9, messages: [{ role: 'user', content: 'look' }] },
  });
  const recorded = await service.deps.db.query('SELECT FROM model_requests WHERE run_id = $1', [runId]);
  return { runId, answer, recorded: recorded.length };
}

test('the gateway asks for admission, and sends the request if it is admitted', async () => {
  admission = { ok: true };
  const { runId, answer } = await askModel();
  expect(answer.status).toBe(200);
  expect(asked.at(-1)).toMatchObject({ runId, teamId: service.teamId, modelId });
  expect(fake.requests).toHaveLength(1);
});

test("the gateway answers in the provider's format when admission is refused, and sends nothing", async () => {
  const before = fake.requests.length;
  admission = { ok: false, status: 429, message: 'the budget of the run is used up', retryAfterSeconds: 60 };
  const { answer, recorded } = await askModel();
  expect(answer.status).toBe(429);
  expect(answer.headers.get('retry-after')).toBe('60');
  expect(answer.body.error.message).toBe('the budget of the run is used up');
  expect(fake.requests).toHaveLength(before);
  expect(recorded).toBe(0);
});

test('the gateway sends nothing if the admission check fails', async () => {
  const before = fake.requests.length;
  admission = new Error('no answer');
  expect((await askModel()).answer.status).toBe(500);
  expect(fake.requests).toHaveLength(before);
});
