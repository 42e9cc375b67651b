/** Questions and permission requests of an agent, whose answers the run waits for. */
import type { AgentRequest, BlockedOn } from '@runyard/contract/runs/approvals';
import { shorten } from '@runyard/contract/wire/shorten';
import type { Queryable } from '../../../platform/store/database/database.ts';
import type { ExecutionDeps } from '../deps.ts';
import { appendQuestionOfFailedRun } from '../timeline/append.ts';
import { block } from '../transitions/transitions.ts';
import { blockDebugTurn } from './turns.ts';

/** The JSON of `runs.open_request` and `executions.debug_request`: also the parts that only the agent needs to continue in another sandbox. */
export type OpenRequest = AgentRequest & { readonly asked_at: string };

const maxSentence = 400;

/** Describes the request for a person: a sentence, and below it a request of several lines as it is. */
export function noticeOf({ kind, title, action }: Pick<AgentRequest, 'kind' | 'title' | 'action'>): string {
  const text = title.trim();
  const shown = shorten(text, maxSentence);
  const head =
    kind === 'question'
      ? 'The agent asks:'
      : `The agent asks for permission${action ? ` to use ${action.name.replace(/\s+/g, ' ')}` : ''}:`;
  const rest = shown === text ? '' : `\n(These are the first ${shown.length - 1} of ${text.length} characters.)`;
  return `${head}${text.includes('\n') ? '\n' : ' '}${shown}${rest}`;
}

/** Returns the request as the API shows it, without the parts that only the agent needs. */
export function blockedOn(request: OpenRequest): BlockedOn {
  const { request_id, kind, title, options, action, asked_at } = request;
  return {
    request_id,
    kind,
    title,
    ...(options ? { options } : {}),
    ...(action ? { action: { name: action.name, category: action.category, input: action.input } } : {}),
    asked_at,
  };
}

/**
 * Blocks the run until a person answers: INPROGRESS → BLOCKED. In the debug window the run stays FAILED, and the timeline gets the
 * question. Subscribers are notified of both. Returns false, and changes nothing, if the agent runs no turn any more.
 */
export async function blockRun(
  deps: ExecutionDeps,
  tx: Queryable,
  input: {
    readonly runId: string;
    readonly executionId: string;
    readonly request: OpenRequest;
    /** Of the run's configuration. null and 0: the default, because a question needs time to be answered. */
    readonly idleSeconds: number | null;
  },
): Promise<boolean> {
  const { runId, executionId, request } = input;
  const message = noticeOf(request);
  const payload = { message, request: blockedOn(request) };
  const isBlocked = await block(tx, {
    runId,
    executionId,
    status: { message },
    payload,
    args: { request, idle_seconds: input.idleSeconds || deps.timing.idleSeconds },
  });
  if (isBlocked) return true;
  if (!(await blockDebugTurn(tx, { runId, executionId }, request))) return false;
  await appendQuestionOfFailedRun(tx, { runId, executionId, payload });
  return true;
}
