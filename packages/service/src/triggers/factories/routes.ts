import type { Factory } from '@runyard/contract/factories/factories';
import { maxFactories } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { Signer } from '../../platform/secrets/signer.ts';
import { notFound, refuse, wrongCursor } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { Database } from '../../platform/store/database/database.ts';
import type { Principal } from '../../team/access/keys/principal.ts';
import { serve, serveOnce } from '../../team/access/serve.ts';
import type { CodeHosts } from '../../team/code-hosts/code-hosts.ts';
import { createFactory, deleteFactory, listFactories, readFactory, type StoredFactory } from './factories.ts';

/** Returns a factory in the form of the API. Some members are computed from its team, its repositories and this service. */
function toItem(
  { agent_defaults: defaults, ...factory }: StoredFactory,
  { teamUid }: Pick<Principal, 'teamUid'>,
  codeHosts: Pick<CodeHosts, 'apiOf'>,
): Factory {
  const [repository] = factory.repositories;
  // The code host is the same for all repositories, because a service uses only one code host.
  const forge = !repository ? 'NONE' : codeHosts.apiOf(repository).kind === 'gitlab' ? 'GITLAB' : 'GITHUB';
  const { default_runner_uid: runner } = defaults;
  return {
    ...factory,
    team_uid: teamUid,
    agent_defaults: {
      ...defaults,
      default_runner_uid: typeof runner === 'string' ? runner : '',
      mcp_servers: defaults.mcp_servers ?? {},
      secrets: defaults.secrets ?? [],
      worker_host: defaults.worker_host ?? '',
    },
    default_environment: defaults.environment_id ?? null,
    default_model: defaults.model_id ?? null,
    code_forge: forge,
    code_forges: [forge],
    scoring: {},
    scorer_defaults: {},
  };
}

/** The routes that list, create, read and delete factories. */
export const factoryRoutes = ({
  db,
  signing,
  codeHosts,
}: {
  readonly db: Database;
  readonly signing: Signer;
  readonly codeHosts: Pick<CodeHosts, 'apiOf'>;
}): readonly ServedRoute[] => [
  serve(routes.listFactories, async ({ principal, query }) => {
    if (query.team_uid !== undefined && query.team_uid !== principal.teamUid)
      return { factories: [], page_info: { has_next_page: false } };
    const page = await listFactories(db, signing, principal.teamId, query);
    return page
      ? { ...page, factories: page.factories.map((factory) => toItem(factory, principal, codeHosts)) }
      : wrongCursor();
  }),

  serveOnce(routes.createFactory, {
    work: async (tx, { principal, body }) => {
      const made = await createFactory(tx, principal, body);
      if (made === 'taken')
        return refuse('conflict', { detail: `alias: the team has a factory ${body.alias}; choose another alias.` });
      if (made === 'too_many')
        return refuse('conflict', { detail: `A team has at most ${maxFactories} factories; delete one.` });
      return toItem(made, principal, codeHosts);
    },
  }),

  serve(routes.getFactory, async ({ principal, params }) => {
    const factory = await readFactory(db, principal.teamId, params.factoryUid);
    return factory ? toItem(factory, principal, codeHosts) : notFound('factory');
  }),

  serve(routes.deleteFactory, async ({ principal, params }) => {
    const wasThere = await deleteFactory(db, principal, params.factoryUid);
    return wasThere ? { success: true as const } : notFound('factory');
  }),
];
