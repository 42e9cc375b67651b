import type { AgentIdentity } from '@runyard/contract/identities';
import { maxIdentities } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import {
  type CheckDefaults,
  createIdentity,
  deleteIdentity,
  type IdentityRefusal,
  listIdentities,
  readIdentity,
  updateIdentity,
} from '../../access/identities/identities.ts';
import { isUid } from '../../access/teams/uid.ts';
import { findNamedEnvironment } from '../../environments/environments.ts';
import { imageProblem } from '../../environments/image.ts';
import { once } from '../../idempotency/once.ts';
import type { Models } from '../../models/models.ts';
import { addRoute } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { invalid, notFound, type Refusal, refuse } from '../server/problem.ts';
import { answerOnce } from '../server/repeatable.ts';

function refuseIdentity(refusal: IdentityRefusal): Refusal {
  switch (refusal.kind) {
    case 'invalid':
      return invalid(refusal.faults);
    case 'owner_needed':
      return refuse('not_authorized', { detail: 'on_behalf_of_enabled: only owners of the team turn it on.' });
    case 'too_many':
      return refuse('conflict', { detail: `A team has at most ${maxIdentities} agent identities; delete one.` });
    case 'not_found':
      return notFound('agent identity');
  }
}

/** An agent is a guest of no environment, so its environment must be of the team. */
const agent = { kind: 'service_account', uid: '' } as const;

/** Returns the check of environment and model, which are of other domains. */
const checkOf =
  (models: Models): CheckDefaults =>
  async (tx, teamId, { base_model, environment_id }) => {
    const faults = [];
    const model = base_model === null ? null : models.resolve(base_model);
    if (model?.ok === false) faults.push({ path: 'base_model', message: model.message });
    if (environment_id === null) return faults;
    const environment = await findNamedEnvironment(tx, { teamId, creator: agent }, environment_id);
    const message =
      environment.kind === 'own'
        ? imageProblem(environment.config)
        : 'there is no such environment in the team. List them with GET /agent/environments';
    return message === null ? faults : [...faults, { path: 'environment_id', message }];
  };

/** Registers list, create, read, change and delete of agent identities. */
export function registerAgentIdentityRoutes(app: FastifyInstance, { db, models }: ServiceDeps): void {
  const check = checkOf(models);

  addRoute(app, routes.listAgentIdentities, async ({ principal }) => ({
    agents: await listIdentities(db, principal.teamId, check),
  }));

  addRoute(app, routes.createAgentIdentity, async ({ principal, body, once: asked }) => {
    const outcome = await once<AgentIdentity, IdentityRefusal>(db, asked, async (tx) => {
      const made = await createIdentity(tx, principal, body, check);
      return made.kind === 'written' ? { kind: 'done', response: made.identity } : { kind: 'failed', failure: made };
    });
    return answerOnce(outcome, refuseIdentity);
  });

  addRoute(app, routes.getAgentIdentity, async ({ principal, params }) => {
    const { identityUid: uid } = params;
    const found = isUid(uid) && (await readIdentity(db, principal.teamId, uid, check));
    return found || notFound('agent identity');
  });

  addRoute(app, routes.updateAgentIdentity, async ({ principal, params, body }) => {
    if (!isUid(params.identityUid)) return notFound('agent identity');
    const outcome = await updateIdentity(db, principal, params.identityUid, body, check);
    return outcome.kind === 'written' ? outcome.identity : refuseIdentity(outcome);
  });

  addRoute(app, routes.deleteAgentIdentity, async ({ principal, params }) => {
    const { identityUid: uid } = params;
    const wasThere = isUid(uid) && (await deleteIdentity(db, principal, uid));
    return wasThere ? { success: true as const } : notFound('agent identity');
  });
}
