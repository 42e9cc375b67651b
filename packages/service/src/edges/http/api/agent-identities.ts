import type { Repository } from '@runyard/contract/environments';
import type { AgentIdentity } from '@runyard/contract/identities';
import { maxIdentities } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import type { Fault } from '../../../platform/fault.ts';
import { answerOnce } from '../../../platform/idempotency/answer-once.ts';
import { once } from '../../../platform/idempotency/once.ts';
import { invalid, notFound, type Refusal, refuse } from '../../../platform/serving/refusal.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import {
  type CheckDefaults,
  createIdentity,
  deleteIdentity,
  type IdentityRefusal,
  listIdentities,
  readIdentity,
  updateIdentity,
} from '../../../team/access/identities/identities.ts';
import { isUid } from '../../../team/access/teams/uid.ts';
import { imageProblem } from '../../../team/environments/image.ts';
import { findNamedEnvironment } from '../../../team/environments/named.ts';
import { noChoices } from '../../../team/models/choices.ts';
import type { Models } from '../../../team/models/models.ts';
import { readModelChoices } from '../../../team/models/team-models.ts';
import { parseSkillSpec } from '../../../team/skills/spec.ts';
import { findMissingSecrets } from '../../../team/stored-secrets/missing-secrets.ts';
import { addRoute } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';

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

/** An agent is a guest of no environment, so its environment must belong to the team. */
const agent = { kind: 'service_account', uid: '' } as const;

/** Returns the check of an identity's references to other domains. */
const checkOf =
  (models: Models): CheckDefaults =>
  async (tx, teamId, { base_model, environment_id, skills, secrets }) => {
    const faults: Fault[] = [];
    const add = (path: string, message: string) => void faults.push({ path, message });
    // An outage ends; a disabled model stays disabled until an administrator enables it.
    const choices = { ...noChoices, disabledIds: (await readModelChoices(tx, teamId)).disabledIds };
    const model = base_model === null ? null : models.resolve(base_model, choices);
    if (model?.ok === false) add('base_model', model.message);
    const { message, repositories } = await checkEnvironment(tx, teamId, environment_id);
    if (message !== null) add('environment_id', message);
    for (const skill of skills) {
      const spec = parseSkillSpec(skill, repositories);
      if (typeof spec === 'string') add('skills', `${skill}: ${spec}`);
    }
    for (const name of await findMissingSecrets(tx, teamId, secrets))
      add('secrets', `the team has no secret ${name}. Set it with PUT /secrets/${name} and the scope team`);
    if (new Set(secrets).size < secrets.length) add('secrets', 'must name each secret once');
    return faults;
  };

/** Returns why the environment of an identity cannot be used, and its repositories. */
async function checkEnvironment(
  tx: Queryable,
  teamId: string,
  environmentId: string | null,
): Promise<{ readonly message: string | null; readonly repositories: readonly Repository[] }> {
  if (environmentId === null) return { message: null, repositories: [] };
  const environment = await findNamedEnvironment(tx, { teamId, creator: agent }, environmentId);
  if (environment.kind === 'own')
    return { message: imageProblem(environment.config), repositories: environment.config.github_repos ?? [] };
  const message = 'there is no such environment in the team. List them with GET /agent/environments';
  return { message, repositories: [] };
}

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
