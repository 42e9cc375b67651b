import { maxIdentities } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import { invalid, notFound, type Refusal, refuse } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { type FindWaiting, withWaiting } from './contents/waiting-after-change.ts';
import type { CheckDefaults } from './identities/defaults.ts';
import {
  createIdentity,
  deleteIdentity,
  type IdentityRefusal,
  type ListAgentsOfFactory,
  listIdentities,
  readIdentity,
  updateIdentity,
} from './identities/identities.ts';
import { serve, serveOnce } from './serve.ts';
import { isUid } from './teams/uid.ts';

function refuseIdentity(refusal: IdentityRefusal): Refusal {
  switch (refusal.kind) {
    case 'invalid': {
      const forbidden = refusal.faults.find(({ isForbidden }) => isForbidden);
      return forbidden
        ? refuse('not_authorized', { detail: `${forbidden.path}: ${forbidden.message}.` })
        : invalid(refusal.faults);
    }
    case 'owner_needed':
      return refuse('not_authorized', { detail: 'on_behalf_of_enabled: only owners of the team turn it on.' });
    case 'too_many':
      return refuse('conflict', { detail: `A team has at most ${maxIdentities} agent identities; delete one.` });
    case 'not_found':
      return notFound('agent identity');
  }
}

interface IdentityRouteDeps {
  readonly db: Database;
  readonly agentsOfFactory: ListAgentsOfFactory;
  /** Returns the faults in an identity's references to objects of other domains. */
  readonly checkIdentity: CheckDefaults;
  readonly findWaiting: FindWaiting;
}

/** Routes that list, create, read, change and delete agent identities. */
export const identityRoutes = ({
  db,
  checkIdentity: check,
  agentsOfFactory,
  findWaiting,
}: IdentityRouteDeps): readonly ServedRoute[] => [
  serve(routes.listAgentIdentities, async ({ principal: { teamId }, query: { factory_uid: factoryUid } }) => ({
    agents:
      factoryUid === undefined
        ? await listIdentities(db, teamId, check)
        : await agentsOfFactory(db, teamId, { factoryUid }, check),
  })),

  serveOnce(routes.createAgentIdentity, {
    work: async (tx, { principal, body }) => {
      const made = await createIdentity(tx, principal, body, check);
      return made.kind === 'written' ? made.identity : refuseIdentity(made);
    },
  }),

  serve(routes.getAgentIdentity, async ({ principal, params }) => {
    const { identityUid: uid } = params;
    if (!isUid(uid)) return notFound('agent identity');
    const found = await readIdentity(db, principal.teamId, uid, check);
    return found ?? (await agentsOfFactory(db, principal.teamId, { uid }, check))[0] ?? notFound('agent identity');
  }),

  serve(routes.updateAgentIdentity, async ({ principal, params, body }) => {
    if (!isUid(params.identityUid)) return notFound('agent identity');
    const outcome = await updateIdentity(db, principal, params.identityUid, body, check);
    if (outcome.kind !== 'written') return refuseIdentity(outcome);
    return await withWaiting(outcome.identity, findWaiting(db, principal, 'agent_identity', outcome.identity.uid));
  }),

  serve(routes.deleteAgentIdentity, async ({ principal, params }) => {
    const { identityUid: uid } = params;
    const wasThere = isUid(uid) && (await deleteIdentity(db, principal, uid));
    return wasThere ? { success: true as const } : notFound('agent identity');
  }),
];
