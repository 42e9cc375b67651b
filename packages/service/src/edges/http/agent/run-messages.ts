import { maxMessagesOfRun, maxMessagesPerMinute, maxWaitingFollowups } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { answerOnce } from '../../../platform/idempotency/answer-once.ts';
import { once } from '../../../platform/idempotency/once.ts';
import { invalid, type Refusal, refuse } from '../../../platform/serving/refusal.ts';
import { refusedChild } from '../../../runs/runs/submit/refused.ts';
import { type MessageOutcome, sendMessage } from '../../../runs/runs/tree/messages.ts';
import { readChildRunsPermission } from '../../../runs/runs/tree/permission.ts';
import { refusedByPolicy } from '../../../team/content-policy/refused.ts';
import { withoutSecrets } from '../../../team/redaction/agent-text.ts';
import { addRoute } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';

type Unsent = Exclude<MessageOutcome, { kind: 'sent' }>;

function refusalOf(outcome: Unsent): Refusal {
  switch (outcome.kind) {
    case 'itself':
      return invalid([{ path: 'run_id', message: 'is your own run' }]);
    case 'not_found':
      return refuse('resource_not_found', { detail: 'There is no such run in the tree of your run.' });
    case 'ended':
      return refuse('conflict', {
        detail: `The run is ${outcome.state} and its sandbox is gone; only the run that started it can continue it.`,
      });
    case 'asks_a_person':
      return refuse('conflict', {
        detail: 'The run waits for the answer of a person. Send the message when it continues.',
      });
    case 'too_many':
      return refuse('conflict', {
        detail: `This run has sent ${maxMessagesOfRun} messages, which is all that a run may send.`,
      });
    case 'too_often':
      return refuse('resource_unavailable', {
        detail: `A run may send ${maxMessagesPerMinute} messages a minute, and ${maxWaitingFollowups} may wait for a run. Wait, and put more into one.`,
        headers: { 'retry-after': '10' },
      });
    case 'refused':
      return refusedChild(outcome.reason);
  }
}

/** Registers the messages between runs of one tree. */
export function registerRunMessageRoutes(app: FastifyInstance, deps: ServiceDeps): void {
  const { db, executionDeps, contentPolicy } = deps;
  addRoute(app, routes.sendRunMessage, async (call) => {
    const { session, body } = call;
    // The other run gets it without the values of secrets.
    const text = withoutSecrets(executionDeps, session, body.message);
    const verdict = await contentPolicy?.check(session.teamId, [{ kind: 'prompt', text }]);
    if (verdict && verdict.kind !== 'allowed') return refusedByPolicy(verdict);
    const maxLive = (await readChildRunsPermission(db, session))?.max_live ?? 0;
    const outcome = await once<{ delivery: 'joined' | 'resumed' | 'continued' }, Unsent>(db, call.once, async (tx) => {
      const sent = await sendMessage(executionDeps, tx, session, body, { maxLive });
      if (sent.kind !== 'sent') return { kind: 'failed', failure: sent };
      return { kind: 'done', response: { delivery: sent.delivery } };
    });
    return answerOnce(outcome, refusalOf);
  });
}
