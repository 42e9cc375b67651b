import type { DispatchRequest } from '@runyard/contract/factory-definitions';
import type { RunSourceType } from '@runyard/contract/states';
import type { RepeatableRequest } from '../../platform/idempotency/once.ts';
import type { SubmitDeps } from '../../runs/runs/submit/prepare.ts';
import { type SubmitOutcome, submitRun } from '../../runs/runs/submit/submit.ts';
import type { Principal } from '../../team/access/keys/principal.ts';
import { readAgentOfRun } from '../factories/agents.ts';
import { configOfFactoryRun } from '../factories/run-config.ts';

/** Outcome of a dispatch. `no_factory`: 404; others are those of a run's create. */
export type DispatchOutcome = SubmitOutcome | { readonly kind: 'no_factory' };

export interface Dispatch {
  readonly actor: Principal;
  readonly factoryUid: string;
  readonly request: DispatchRequest;
  readonly source: RunSourceType;
  readonly once: RepeatableRequest | undefined;
}

/** Starts a run of the foreman of a factory, as the caller. */
export async function dispatchFactory(
  deps: SubmitDeps,
  { actor, factoryUid, request, source, once }: Dispatch,
): Promise<DispatchOutcome> {
  const { prompt, title, ticket_ref, ticket_url } = request;
  const foreman = await readAgentOfRun(deps.executionDeps.db, { teamId: actor.teamId, factoryUid });
  if (!foreman) return { kind: 'no_factory' };
  const ticket = [ticket_ref, ticket_url].filter((part) => part !== undefined).join(' ');
  return await submitRun(deps, {
    actor,
    by: actor,
    source,
    once,
    contents: [{ kind: 'definition', uid: factoryUid, revision: foreman.revision }],
    request: {
      prompt: ticket === '' ? prompt : `${prompt}\n\nTicket: ${ticket}`,
      config: configOfFactoryRun(foreman),
      metadata: {
        factory_uid: factoryUid,
        ...(ticket_ref === undefined ? {} : { ticket_ref }),
        ...(ticket_url === undefined ? {} : { ticket_url }),
      },
      ...(title === undefined ? {} : { title }),
    },
  });
}
