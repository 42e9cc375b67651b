import type { Environment, EnvironmentConfig } from '@runyard/contract/environments';
import { maxEnvironments } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { answerOnce } from '../../../platform/idempotency/answer-once.ts';
import { once } from '../../../platform/idempotency/once.ts';
import { invalid, notFound, type Refusal, refuse } from '../../../platform/serving/refusal.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import type { Principal } from '../../../team/access/keys/principal.ts';
import { isUid } from '../../../team/access/teams/uid.ts';
import { refusedByPolicy } from '../../../team/content-policy/refused.ts';
import {
  createEnvironment,
  deleteEnvironment,
  listEnvironments,
  lockEnvironment,
  readEnvironment,
  updateEnvironment,
} from '../../../team/environments/environments.ts';
import { checkEnvironmentSecrets } from '../../../team/stored-secrets/environment-secrets.ts';
import { addRoute } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';

/** Registers list, create, read, replace and delete of environments. */
export function registerEnvironmentRoutes(
  app: FastifyInstance,
  { db, vault, contentPolicy, lastRuns }: ServiceDeps,
): void {
  const readRuns = lastRuns.ofEnvironments;
  /** Asks the content policy about the setup commands, outside of transactions; null: it allows them. */
  const refuseCommands = async (teamId: string, { setup_commands }: EnvironmentConfig): Promise<Refusal | null> => {
    const texts = (setup_commands ?? []).map((text) => ({ kind: 'setup_command' as const, text }));
    const verdict = await contentPolicy?.check(teamId, texts);
    return verdict && verdict.kind !== 'allowed' ? refusedByPolicy(verdict) : null;
  };

  addRoute(app, routes.listEnvironments, async ({ query, principal }) => ({
    environments: await listEnvironments(db, principal, query.sort_by, readRuns),
  }));

  /**
   * Returns the refusal of secrets that the caller may not grant to the environment; null: the caller may. `before` are the secrets
   * that it has already.
   */
  const refuseSecrets = async (
    tx: Queryable,
    principal: Principal,
    config: EnvironmentConfig,
    before: EnvironmentConfig = {},
  ) => {
    const refusal = await checkEnvironmentSecrets(tx, vault, principal, config.secrets ?? [], before.secrets ?? []);
    if (refusal === null) return null;
    if (refusal.kind === 'forbidden') return refuse('not_authorized', { detail: refusal.detail });
    return invalid(refusal.faults);
  };

  addRoute(app, routes.createEnvironment, async (call) => {
    const { principal, body } = call;
    const refused =
      (await refuseCommands(principal.teamId, body.config)) ?? (await refuseSecrets(db, principal, body.config));
    if (refused) return refused;
    const outcome = await once<Environment, 'too_many'>(db, call.once, async (tx) => {
      const made = await createEnvironment(tx, call.principal, call.body.config, readRuns);
      return made === 'too_many' ? { kind: 'failed', failure: made } : { kind: 'done', response: made };
    });
    return answerOnce(outcome, () =>
      refuse('conflict', { detail: `A team has at most ${maxEnvironments} environments; delete one.` }),
    );
  });

  addRoute(app, routes.getEnvironment, async ({ params, principal }) => {
    const environment = isUid(params.uid) && (await readEnvironment(db, principal, params.uid, readRuns));
    return environment || notFound('environment');
  });

  addRoute(app, routes.updateEnvironment, async ({ params, body, principal }) => {
    const { uid } = params;
    if (!isUid(uid)) return notFound('environment');
    const refusedText = await refuseCommands(principal.teamId, body.config);
    if (refusedText) return refusedText;
    return await db.transaction(async (tx) => {
      // The lock prevents that a secret which is deleted at the same time is stored again as one that the environment has.
      const before = await lockEnvironment(tx, principal.teamId, uid);
      if (!before) return notFound('environment');
      const refused = await refuseSecrets(tx, principal, body.config, before);
      if (refused) return refused;
      await updateEnvironment(tx, principal, uid, body.config);
      return (await readEnvironment(tx, principal, uid, readRuns)) ?? notFound('environment');
    });
  });

  addRoute(app, routes.deleteEnvironment, async ({ params, principal }) => {
    const { uid } = params;
    const wasThere = isUid(uid) && (await db.transaction((tx) => deleteEnvironment(tx, principal, uid)));
    return wasThere ? { success: true as const } : notFound('environment');
  });
}
