import type { CreateEnvironmentRequest, EnvironmentConfig } from '@runyard/contract/environments/environments';
import { commandsOfServices } from '@runyard/contract/environments/services';
import { maxEnvironments } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { Settings } from '@runyard/contract/settings/settings';
import { invalid, notFound, Refusal, refuse } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import { type FindWaiting, withWaiting } from '../access/contents/waiting-after-change.ts';
import { serve, serveOnce } from '../access/serve.ts';
import { isUid } from '../access/teams/uid.ts';
import { codeHostUrl, hostOf, repositoryAt } from '../code-hosts/url.ts';
import { type ContentPolicy, refusedByPolicy } from '../content-policy/content-policy.ts';
import { createEnvironment, deleteEnvironment, listEnvironments, readEnvironment } from './environments.ts';
import { type RefusedSecrets, type ReplaceDeps, replaceEnvironment } from './replace.ts';

export interface EnvironmentRouteDeps extends ReplaceDeps {
  readonly settings: Pick<Settings, 'RUNYARD_CODE_HOST_URL'>;
  readonly contentPolicy?: ContentPolicy;
  readonly findWaiting: FindWaiting;
}

const refusedSecrets = (refusal: RefusedSecrets): Refusal =>
  refusal.kind === 'forbidden' ? refuse('not_authorized', { detail: refusal.detail }) : invalid(refusal.faults);

/** Returns the configuration with owner and name of each repository. Refuses addresses that do not lead to the code host. */
function withNames({ config }: CreateEnvironmentRequest, template: string): EnvironmentConfig | Refusal {
  const { github_repos, ...others } = config;
  if (github_repos === undefined) return others;
  const named = github_repos.map(({ url, owner = '', repo = '', ...more }) => {
    const found = url === undefined ? { owner, repo } : repositoryAt(template, url);
    return found && { ...found, ...more };
  });
  const host = hostOf(codeHostUrl(template, { owner: 'owner', repo: 'repo' }));
  const faults = named.flatMap((each, index) =>
    each === undefined
      ? [
          {
            path: `config.github_repos.${index}.url`,
            message: `must be the address of a repository on ${host} (RUNYARD_CODE_HOST_URL), such as https://${host}/owner/repo`,
          },
        ]
      : [],
  );
  return faults.length > 0 ? invalid(faults) : { ...others, github_repos: named.filter((each) => each !== undefined) };
}

/** Routes that list, create, read, replace and delete environments. */
export function environmentRoutes(deps: EnvironmentRouteDeps): readonly ServedRoute[] {
  const { db, vault, contentPolicy, lastRuns, checkSecrets, findWaiting } = deps;
  const template = deps.settings.RUNYARD_CODE_HOST_URL;
  const readRuns = lastRuns.ofEnvironments;
  const refuseSystem = ({ system, docker_image: image }: EnvironmentConfig): Refusal | null =>
    system === undefined || image === undefined || image.trim() === ''
      ? null
      : invalid([{ path: 'config.system', message: 'not together with docker_image: it has the system of the image' }]);
  /** Asks the content policy about the commands of setup and services, outside of transactions; returns null if it allows them. */
  const refuseCommands = async (teamId: string, config: EnvironmentConfig): Promise<Refusal | null> => {
    const commands = [...(config.setup_commands ?? []), ...commandsOfServices(config)];
    const texts = commands.map((text) => ({ kind: 'setup_command' as const, text }));
    const verdict = await contentPolicy?.check(teamId, texts);
    return verdict && verdict.kind !== 'allowed' ? refusedByPolicy(verdict) : null;
  };

  return [
    serve(routes.listEnvironments, async ({ query, principal }) => ({
      environments: await listEnvironments(db, principal, query.sort_by, readRuns),
    })),

    serveOnce(routes.createEnvironment, {
      check: async ({ principal, body }) => {
        const config = withNames(body, template);
        if (config instanceof Refusal) return config;
        const refused = refuseSystem(config) ?? (await refuseCommands(principal.teamId, config));
        if (refused) return refused;
        const secrets = await checkSecrets(db, vault, principal, config.secrets ?? [], []);
        return secrets && refusedSecrets(secrets);
      },
      work: async (tx, { principal, body }) => {
        const config = withNames(body, template);
        if (config instanceof Refusal) return config;
        const made = await createEnvironment(tx, principal, config, readRuns);
        if (made !== 'too_many') return made;
        return refuse('conflict', { detail: `A team has at most ${maxEnvironments} environments; delete one.` });
      },
    }),

    serve(routes.getEnvironment, async ({ params, principal }) => {
      const environment = isUid(params.uid) && (await readEnvironment(db, principal, params.uid, readRuns));
      return environment || notFound('environment');
    }),

    serve(routes.updateEnvironment, async ({ params, body, principal }) => {
      const { uid } = params;
      if (!isUid(uid)) return notFound('environment');
      const config = withNames(body, template);
      if (config instanceof Refusal) return config;
      const refused = refuseSystem(config) ?? (await refuseCommands(principal.teamId, config));
      if (refused) return refused;
      const outcome = await replaceEnvironment(deps, principal, uid, config);
      switch (outcome.kind) {
        case 'replaced':
          return await withWaiting(outcome.environment, findWaiting(db, principal, 'environment', uid));
        case 'not_found':
          return notFound('environment');
        default:
          return refusedSecrets(outcome);
      }
    }),

    serve(routes.deleteEnvironment, async ({ params, principal }) => {
      const { uid } = params;
      const wasThere = isUid(uid) && (await db.transaction((tx) => deleteEnvironment(tx, principal, uid)));
      return wasThere ? { success: true as const } : notFound('environment');
    }),
  ];
}
