import type { Environment, EnvironmentConfig } from '@runyard/contract/environments';
import { maxEnvironments } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { isUid } from '../../access/teams/uid.ts';
import {
  createEnvironment,
  deleteEnvironment,
  listEnvironments,
  readEnvironment,
  updateEnvironment,
} from '../../environments/environments.ts';
import { once } from '../../idempotency/once.ts';
import { addRoute } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { notFound, type Refusal, refuse } from '../server/problem.ts';
import { refusedByPolicy } from '../server/refused-submission.ts';
import { answerOnce } from '../server/repeatable.ts';

/** Registers list, create, read, replace and delete of environments. */
export function registerEnvironmentRoutes(app: FastifyInstance, { db, contentPolicy }: ServiceDeps): void {
  /** Asks the content policy about the setup commands, outside of transactions; null: nothing is against them. */
  const refusalOf = async (teamId: string, { setup_commands }: EnvironmentConfig): Promise<Refusal | null> => {
    const texts = (setup_commands ?? []).map((text) => ({ kind: 'setup_command' as const, text }));
    const verdict = await contentPolicy?.check(teamId, texts);
    return verdict && verdict.kind !== 'allowed' ? refusedByPolicy(verdict) : null;
  };

  addRoute(app, routes.listEnvironments, async ({ query, principal }) => ({
    environments: await listEnvironments(db, principal, query.sort_by),
  }));

  addRoute(app, routes.createEnvironment, async (call) => {
    const refused = await refusalOf(call.principal.teamId, call.body.config);
    if (refused) return refused;
    const outcome = await once<Environment, 'too_many'>(db, call.once, async (tx) => {
      const made = await createEnvironment(tx, call.principal, call.body.config);
      return made === 'too_many' ? { kind: 'failed', failure: made } : { kind: 'done', response: made };
    });
    return answerOnce(outcome, () =>
      refuse('conflict', { detail: `A team has at most ${maxEnvironments} environments; delete one.` }),
    );
  });

  addRoute(app, routes.getEnvironment, async ({ params, principal }) => {
    const environment = isUid(params.uid) && (await readEnvironment(db, principal, params.uid));
    return environment || notFound('environment');
  });

  addRoute(app, routes.updateEnvironment, async ({ params, body, principal }) => {
    const refused = await refusalOf(principal.teamId, body.config);
    if (refused) return refused;
    const editing = { teamId: principal.teamId, editor: principal.creator };
    const isThere = isUid(params.uid) && (await updateEnvironment(db, editing, params.uid, body.config));
    const environment = isThere && (await readEnvironment(db, principal, params.uid));
    return environment || notFound('environment');
  });

  addRoute(app, routes.deleteEnvironment, async ({ params, principal }) => {
    const wasThere = isUid(params.uid) && (await deleteEnvironment(db, principal.teamId, params.uid));
    return wasThere ? { success: true as const } : notFound('environment');
  });
}
