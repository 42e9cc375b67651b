import { randomUUIDv7 } from 'node:crypto';
import type { DispatchRequest, DispatchResponse } from '@runyard/contract/factories/factory-definitions';
import type { RunSourceType } from '@runyard/contract/runs/states';
import { findReplay, once, type RepeatableRequest } from '../../platform/idempotency/once.ts';
import { prepareRun, type SubmitDeps } from '../../runs/runs/submit/prepare.ts';
import { type SubmitRefusal, writeRun } from '../../runs/runs/submit/submit.ts';
import type { Principal } from '../../team/access/keys/principal.ts';
import { newUid } from '../../team/access/teams/uid.ts';
import { readAgentOfRun } from '../factories/agents.ts';
import { keepFactory } from '../factories/factories.ts';
import { configOfFactoryRun } from '../factories/run-config.ts';
import { insertTask } from './tasks/write.ts';

type Dispatched = Omit<DispatchResponse, 'run_url'>;

/** Outcome of a dispatch. `no_factory` becomes 404. The other refusals are those of creating a run. */
export type DispatchOutcome =
  | { readonly kind: 'dispatched'; readonly response: Dispatched }
  | { readonly kind: 'no_factory' }
  | SubmitRefusal;

export interface Dispatch {
  readonly actor: Principal;
  readonly factoryUid: string;
  readonly request: DispatchRequest;
  readonly source: RunSourceType;
  /** Identifies the request, so that a repetition gets the same answer. Undefined: the sender does not repeat the request. */
  readonly repeatable: RepeatableRequest | undefined;
}

interface Ticket {
  /** The ticket as the answer of the dispatch shows it. */
  readonly ref: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/**
 * Returns the ticket of a dispatch. `ticket_ref` of the request is `SOURCE:ID`, or an id without a source. If the request names no
 * ticket, makes a ticket with the source `adhoc`.
 */
function ticketOf({ ticket_ref: given, ticket_url }: DispatchRequest): Ticket {
  const url: Record<string, string> = ticket_url === undefined ? {} : { ticket_url };
  if (given === undefined) {
    const id = newUid();
    return { ref: `adhoc:${id}`, metadata: { ticket_source: 'adhoc', ticket_id: id, ...url } };
  }
  const ref = given.trim();
  const [, source, id = ref] = /^([^\s:]+):\s*(\S.*)$/s.exec(ref) ?? [];
  return {
    ref,
    metadata: { ticket_ref: given, ...(source === undefined ? {} : { ticket_source: source }), ticket_id: id, ...url },
  };
}

/**
 * Starts a run of a factory's foreman, and creates the task on which the run works, in one transaction. The caller becomes the creator
 * of the run.
 */
export async function dispatchFactory(
  deps: SubmitDeps,
  { actor, factoryUid, request, source, repeatable }: Dispatch,
): Promise<DispatchOutcome> {
  const { db } = deps.executionDeps;
  const { teamId } = actor;
  if (repeatable) {
    // A repeated request gets the first answer, even if the factory was deleted meanwhile.
    const earlier = await findReplay<Dispatched>(db, repeatable);
    if (earlier.kind === 'replayed') return { kind: 'dispatched', response: earlier.response };
    if (earlier.kind === 'conflict') return { kind: 'idempotency_conflict' };
  }
  const foreman = await readAgentOfRun(db, { teamId, factoryUid });
  if (!foreman) return { kind: 'no_factory' };
  const { prompt, title, ticket_ref, ticket_url } = request;
  const ticket = ticketOf(request);
  const ticketText = [ticket_ref, ticket_url].filter((part) => part !== undefined).join(' ');
  const prepared = await prepareRun(deps, {
    actor,
    by: actor,
    source,
    contents: [{ kind: 'definition', uid: factoryUid, revision: foreman.revision }],
    request: {
      prompt: ticketText === '' ? prompt : `${prompt}\n\nTicket: ${ticketText}`,
      config: configOfFactoryRun(foreman),
      metadata: { factory_uid: factoryUid, ...ticket.metadata },
      ...(title === undefined ? {} : { title }),
    },
  });
  if (prepared.kind !== 'prepared') return prepared;
  const conversationId = randomUUIDv7();
  const run = { ...prepared.run, conversationId };
  const attempt = await once<Dispatched, DispatchOutcome>(db, repeatable, async (tx) => {
    if (!(await keepFactory(tx, teamId, factoryUid))) return { kind: 'failed', failure: { kind: 'no_factory' } };
    const written = await writeRun(tx, { ...prepared, run });
    if (written.kind !== 'written') return { kind: 'failed', failure: written };
    await insertTask(tx, { teamId, factoryUid, conversationId, runId: run.id, title: run.title });
    const { run_id, state } = written.response;
    const response = {
      run_id,
      state,
      factory_uid: factoryUid,
      foreman_agent: foreman.agent.name,
      ticket_ref: ticket.ref,
    };
    return { kind: 'done', response };
  });
  switch (attempt.kind) {
    case 'done':
      return { kind: 'dispatched', response: attempt.response };
    case 'failed':
      return attempt.failure;
    case 'conflict':
      return { kind: 'idempotency_conflict' };
  }
}
