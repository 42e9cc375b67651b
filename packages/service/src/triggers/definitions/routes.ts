import { routes } from '@runyard/contract/routes';
import { invalid, notFound, refuse, tooBusy } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import { type FindWaiting, withWaiting } from '../../team/access/contents/waiting-after-change.ts';
import { serve } from '../../team/access/serve.ts';
import type { CodeHosts } from '../../team/code-hosts/code-hosts.ts';
import { applyDefinition, type DefinitionDeps } from './apply.ts';
import { readFactoryDefinition } from './read.ts';
import { removeFactorySource, setSource } from './source/set.ts';
import { showSource } from './source/show.ts';
import { planSyncOfStored, type SyncDeps, syncNow } from './source/sync.ts';
import type { FileChecks } from './validate.ts';

/** The routes that apply, check and read the definitions of factories. */
export const definitionRoutes = (
  deps: DefinitionDeps & { readonly findWaiting: FindWaiting },
  checks: FileChecks,
): readonly ServedRoute[] => [
  serve(routes.getFactoryDefinition, async ({ principal, params }) => {
    const factory = { teamId: principal.teamId, factoryUid: params.factoryUid };
    return (await readFactoryDefinition(deps, deps.db, factory)) ?? notFound('definition');
  }),

  serve(routes.applyFactoryDefinition, async ({ principal, params, body }) => {
    const outcome = await applyDefinition(deps, principal, params.factoryUid, body);
    switch (outcome.kind) {
      case 'applied':
        return body.dry_run
          ? outcome.response
          : await withWaiting(outcome.response, deps.findWaiting(deps.db, principal, 'definition', params.factoryUid));
      case 'no_factory':
        return notFound('factory');
      case 'other_version':
        return refuse('conflict', {
          detail: `expected_version: the definition has version ${outcome.version} now. Plan again with dry_run.`,
        });
      case 'has_source':
        return refuse('conflict', {
          detail: `The factory takes its definition from ${outcome.repository}. Push the change there, or detach the factory with DELETE /factory/${params.factoryUid}/source.`,
        });
      case 'superseded':
        throw new Error('only a sync is superseded');
      case 'faulty': {
        const errors = outcome.faults.map(({ file, ...fault }) => ({ path: file, ...fault }));
        const [first] = outcome.faults;
        const detail = first && `${first.file}:${first.line}:${first.column}: ${first.message}`;
        return refuse('invalid_request', { status: 422, errors, ...(detail ? { detail } : {}) });
      }
    }
  }),

  serve(routes.validateFactoryFiles, async ({ principal, body }) => {
    const outcome = await checks.validate(principal?.teamId, body.files);
    switch (outcome.kind) {
      case 'checked':
        return outcome.response;
      case 'busy':
        return tooBusy(
          'Too many checks of definition files are already waiting, from this caller or from all callers.',
        );
      case 'too_slow':
        return invalid([{ path: 'files', message: 'take too long to read; send fewer files, or simpler YAML' }]);
    }
  }),
];

/** A signal that never aborts, so that a sync continues even if the client that requested it disconnects. */
const neverAborted = new AbortController().signal;

interface SourceRouteDeps extends SyncDeps {
  readonly codeHosts: CodeHosts;
}

/** The routes that set and read the repository that contains the definition of a factory, and start a sync with it. */
export const sourceRoutes = (deps: SourceRouteDeps): readonly ServedRoute[] => [
  serve(routes.getFactorySource, async ({ principal, params }) => {
    const factory = { teamId: principal.teamId, factoryUid: params.factoryUid };
    return (await showSource(deps, factory)) ?? notFound('source');
  }),

  serve(routes.setFactorySource, async ({ principal, params, body }) => {
    const outcome = await setSource(deps, principal, params.factoryUid, body, neverAborted);
    switch (outcome.kind) {
      case 'set': {
        const factory = { teamId: principal.teamId, factoryUid: params.factoryUid };
        const source = await showSource(deps, factory);
        return { ...(source ? { source } : {}), sync: outcome.sync };
      }
      case 'invalid':
        return invalid([{ path: 'repository', message: outcome.message }]);
      case 'no_factory':
        return notFound('factory');
    }
  }),

  serve(routes.deleteFactorySource, async ({ principal, params }) => {
    const wasThere = await removeFactorySource(deps.db, principal, params.factoryUid);
    return wasThere ? { success: true as const } : notFound('source');
  }),

  serve(routes.syncFactorySource, async ({ principal, params, body }) => {
    const factory = { teamId: principal.teamId, factoryUid: params.factoryUid };
    const outcome = await (body?.dry_run ? planSyncOfStored : syncNow)(deps, factory, neverAborted);
    if (outcome === 'no_source') return notFound('source');
    if (outcome === 'busy')
      return refuse('conflict', { detail: 'Another sync of the factory is at work. Read the source for its outcome.' });
    return outcome;
  }),
];
