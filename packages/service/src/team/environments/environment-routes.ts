import type { EnvironmentConfig } from '@runyard/contract/environments/environments';
import { maxEnvironments } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import { invalid, notFound, type Refusal, refuse } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import { type FindWaiting, withWaiting } from '../access/contents/waiting-after-change.ts';
import { serve, serveOnce } from '../access/serve.ts';
import { isUid } from '../access/teams/uid.ts';
import { type ContentPolicy, refusedByPolicy } from '../content-policy/content-policy.ts';
import { createEnvironment, deleteEnvironment, listEnvironments, readEnvironment } from './environments.ts';
import { type RefusedSecrets, type ReplaceDeps, replaceEnvironment } from './replace.ts';

export interface EnvironmentRouteDeps extends ReplaceDeps {
  readonly contentPolicy?: ContentPolicy;
  readonly findWaiting: FindWaiting;
}

const refusedSecrets = (refusal: RefusedSecrets): Refusal =>
  refusal.kind === 'forbidden' ? refuse('not_authorized', { detail: refusal.detail }) : invalid(refusal.faults);

/** Routes that list, create, read, replace and delete environments. */
export function environmentRoutes(deps: EnvironmentRouteDeps): readonly ServedRoute[] {
  const { db, vault, contentPolicy, lastRuns, checkSecrets, findWaiting } = deps;
  const readRuns = lastRuns.ofEnvironments;
  const refuseSystem = ({ system, docker_image: image }: EnvironmentConfig): Refusal | null =>
    system === undefined || image === undefined || image.trim() === ''
      ? null
      : invalid([{ path: 'config.system', message: 'a sandbox with a docker_image has the system of the image' }]);
  /** Asks the content policy about the setup commands, outside of transactions; returns null if it allows them. */
  const refuseCommands = async (teamId: string, { setup_commands }: EnvironmentConfig): Promise<Refusal | null> => {
    const texts = (setup_commands ?? []).map((text) => ({ kind: 'setup_command' as const, text }));
    const verdict = await contentPolicy?.check(teamId, texts);
    return verdict && verdict.kind !== 'allowed' ? refusedByPolicy(verdict) : null;
  };

  return [
    serve(routes.listEnvironments, async ({ query, principal }) => ({
      environments: await listEnvironments(db, principal, query.sort_by, readRuns),
    })),

    serveOnce(routes.createEnvironment, {
      check: async ({ principal, body: { config } }) => {
        const refused = refuseSystem(config) ?? (await refuseCommands(principal.teamId, config));
        if (refused) return refused;
        const secrets = await checkSecrets(db, vault, principal, config.secrets ?? [], []);
        return secrets && refusedSecrets(secrets);
      },
      work: async (tx, { principal, body }) => {
        const made = await createEnvironment(tx, principal, body.config, readRuns);
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
      const refused = refuseSystem(body.config) ?? (await refuseCommands(principal.teamId, body.config));
      if (refused) return refused;
      const outcome = await replaceEnvironment(deps, principal, uid, body.config);
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
