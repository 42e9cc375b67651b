/** A run whose agent waits for a person: what it asks, as the record and the API have it. */
import type { AgentRequest, BlockedOn } from '@runyard/contract/approvals';
import { shorten } from '@runyard/contract/shorten';
import { summarised } from '../../conversations/output.ts';
import type { Queryable } from '../../store/database/database.ts';
import type { Engine } from '../engine.ts';
import { appendQuestionOfFailedRun } from '../timeline/append.ts';
import { block } from '../transitions/transitions.ts';
import { blockDebugTurn } from './setup-window.ts';

/** `runs.open_request`, `executions.debug_request`: also what only the agent needs, to go on in another sandbox. */
export type OpenRequest = AgentRequest & { readonly asked_at: string };

const maxSentence = 400;

/** What a person has to know, in one sentence. */
function sentenceOf({ kind, title, action }: AgentRequest): string {
  const line = title.replace(/\s+/g, ' ').trim();
  const shown = shorten(line, maxSentence);
  if (kind === 'question') return `The agent asks: ${shown}`;
  return `The agent asks for permission${action ? ` to use ${action.name.replace(/\s+/g, ' ')}` : ''}: ${shown}`;
}

/** The request without what is only the agent's. */
export function blockedOn(request: OpenRequest): BlockedOn {
  const { request_id, kind, title, options, action, asked_at } = request;
  return {
    request_id,
    kind,
    title,
    ...(options ? { options } : {}),
    ...(action ? { action: { name: action.name, category: action.category, input: summarised(action.input) } } : {}),
    asked_at,
  };
}

/**
 * The agent waits, its sandbox rests: INPROGRESS → BLOCKED. In the sandbox of a failed setup the run stays FAILED, and its
 * timeline has the question; subscribers are told of both. Nothing happens where the run has moved on.
 */
export async function blockRun(
  engine: Engine,
  tx: Queryable,
  input: {
    readonly runId: string;
    readonly executionId: string;
    readonly request: OpenRequest;
    /** As the run's configuration says; null: it does not. Where it says 0, who asks waits all the same. */
    readonly idleSeconds: number | null;
  },
): Promise<boolean> {
  const { runId, executionId, request } = input;
  const message = sentenceOf(request);
  const payload = { message, request: blockedOn(request) };
  const isBlocked = await block(tx, {
    runId,
    executionId,
    status: { message },
    payload,
    args: { request, idle_seconds: input.idleSeconds || engine.timing.idleSeconds },
  });
  if (isBlocked) return true;
  if (!(await blockDebugTurn(tx, { runId, executionId }, request))) return false;
  await appendQuestionOfFailedRun(tx, { runId, executionId, payload });
  return true;
}
