import { maxFactories } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import { invalid, notFound, type Refusal, refuse, tooBusy } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import { type FindWaiting, withWaiting } from '../../team/access/contents/waiting-after-change.ts';
import { serve } from '../../team/access/serve.ts';
import type { CodeHosts } from '../../team/code-hosts/code-hosts.ts';
import { refusedByPolicy } from '../../team/content-policy/content-policy.ts';
import { readFactory } from '../factories/factories.ts';
import { type ApplyOutcome, applyDefinition, type DefinitionDeps } from './apply.ts';
import { createFromFiles } from './create.ts';
import { planDefinition } from './plan.ts';
import { readFactoryDefinition } from './read.ts';
import { removeFactorySource, setSource } from './source/set.ts';
import { showSource } from './source/show.ts';
import { planSyncOfStored, type SyncDeps, syncNow } from './source/sync.ts';
import type { FileChecks } from './validate.ts';
import { compareVersions, listVersions, readVersion, rollBack } from './versions.ts';

const refusedCheck = (kind: 'busy' | 'too_slow'): Refusal =>
  kind === 'busy'
    ? tooBusy('Too many checks of definition files are already waiting, from this caller or from all callers.')
    : invalid([{ path: 'files', message: 'take too long to read; send fewer files, or simpler YAML' }]);

/** Returns the number of a version in a path; null if the text is not such a number. */
const versionIn = (text: string): number | null => (/^[1-9]\d{0,8}$/.test(text) ? Number(text) : null);

function refusedApply(outcome: Exclude<ApplyOutcome, { kind: 'applied' }>, factoryUid: string): Refusal {
  switch (outcome.kind) {
    case 'no_factory':
      return notFound('factory');
    case 'other_version':
      return refuse('conflict', {
        detail: `expected_version: the definition has version ${outcome.version} now. Plan again with dry_run.`,
      });
    case 'has_source':
      return refuse('conflict', {
        detail: `The factory takes its definition from ${outcome.repository}. Push the change there, or detach the factory with DELETE /factory/${factoryUid}/source.`,
      });
    case 'superseded':
      throw new Error('only a sync is superseded');
    case 'policy_violation':
    case 'policy_unavailable':
      return refusedByPolicy(outcome);
    case 'faulty': {
      const errors = outcome.faults.map(({ file, code: _code, ...fault }) => ({ path: file, ...fault }));
      const [first] = outcome.faults;
      const detail = first && `${first.file}:${first.line}:${first.column}: ${first.message}`;
      return refuse('invalid_request', { status: 422, errors, ...(detail ? { detail } : {}) });
    }
  }
}

/** The routes that apply, plan, check and read the definitions of factories. */
export const definitionRoutes = (
  deps: DefinitionDeps,
  checks: FileChecks,
  findWaiting: FindWaiting,
): readonly ServedRoute[] => [
  serve(routes.getFactoryDefinition, async ({ principal, params }) => {
    const factory = { teamId: principal.teamId, factoryUid: params.factoryUid };
    return (await readFactoryDefinition(deps, deps.db, factory)) ?? notFound('definition');
  }),

  serve(routes.applyFactoryDefinition, async ({ principal, params: { factoryUid }, body }) => {
    const outcome = await applyDefinition(deps, principal, factoryUid, body);
    if (outcome.kind !== 'applied') return refusedApply(outcome, factoryUid);
    return body.dry_run
      ? outcome.response
      : await withWaiting(outcome.response, findWaiting(deps.db, principal, 'definition', factoryUid));
  }),

  serve(routes.planFactoryDefinition, async ({ principal, params: { factoryUid }, body }) => {
    const outcome = await planDefinition(deps, checks, principal, factoryUid, body);
    switch (outcome.kind) {
      case 'planned':
        return outcome.response;
      case 'busy':
      case 'too_slow':
        return refusedCheck(outcome.kind);
      default:
        return refusedApply(outcome, factoryUid);
    }
  }),

  serve(routes.createFactoryFromFiles, async ({ principal, body }) => {
    const outcome = await createFromFiles(deps, principal, body);
    switch (outcome.kind) {
      case 'created':
        return outcome.response;
      case 'too_many':
        return refuse('conflict', { detail: `A team has at most ${maxFactories} factories; delete one.` });
      case 'exists':
        return refuse('conflict', {
          detail: `name: the team has the factory ${outcome.uid} with this name. Apply the files to it with PUT /factory/${outcome.uid}/definition, or change the name.`,
        });
      default:
        return refusedApply(outcome, '');
    }
  }),

  serve(routes.listDefinitionVersions, async ({ principal, params }) => {
    const factory = { teamId: principal.teamId, factoryUid: params.factoryUid };
    if (!(await readFactory(deps.db, factory.teamId, factory.factoryUid))) return notFound('factory');
    return { versions: await listVersions(deps.db, factory) };
  }),

  serve(routes.getDefinitionVersion, async ({ principal, params }) => {
    const factory = { teamId: principal.teamId, factoryUid: params.factoryUid };
    const version = versionIn(params.version);
    return (version === null ? null : await readVersion(deps.db, factory, version)) ?? notFound('version');
  }),

  serve(routes.compareDefinitionVersions, async ({ principal, params, query }) => {
    const factory = { teamId: principal.teamId, factoryUid: params.factoryUid };
    const to = versionIn(params.version);
    if (to === null) return notFound('version');
    const outcome = await compareVersions(deps.db, factory, { from: query.from ?? to - 1, to });
    switch (outcome.kind) {
      case 'compared':
        return outcome.diff;
      case 'no_version':
        return notFound('version');
      case 'not_readable':
        return refuse('conflict', {
          detail: `The files of the version ${outcome.version} were not kept, or have a format that this service does not read any more.`,
        });
    }
  }),

  serve(routes.rollBackDefinition, async ({ principal, params: { factoryUid }, body }) => {
    const outcome = await rollBack(deps, principal, factoryUid, body);
    switch (outcome.kind) {
      case 'applied':
        return body.dry_run
          ? outcome.response
          : await withWaiting(outcome.response, findWaiting(deps.db, principal, 'definition', factoryUid));
      case 'no_version':
        return notFound('version');
      case 'not_kept':
        return refuse('conflict', {
          detail: `The files of the version ${body.version} were too large to be kept. Apply them from their folder.`,
        });
      default:
        return refusedApply(outcome, factoryUid);
    }
  }),

  serve(routes.validateFactoryFiles, async ({ principal, body }) => {
    const outcome = await checks.validate(principal?.teamId, body);
    switch (outcome.kind) {
      case 'checked':
        return outcome.response;
      default:
        return refusedCheck(outcome.kind);
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
