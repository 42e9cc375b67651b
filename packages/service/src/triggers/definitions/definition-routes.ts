import { routes } from '@runyard/contract/routes';
import { tooBusy } from '../../platform/bodies/too-busy.ts';
import { invalid, notFound, refuse } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import { serve } from '../../team/access/serve.ts';
import { applyDefinition, type DefinitionDeps } from './apply.ts';
import { readFactoryDefinition } from './read.ts';
import type { FileChecks } from './validate.ts';

/** The definitions of factories. */
export const definitionRoutes = (deps: DefinitionDeps, checks: FileChecks): readonly ServedRoute[] => [
  serve(routes.getFactoryDefinition, async ({ principal, params }) => {
    const factory = { teamId: principal.teamId, factoryUid: params.factoryUid };
    return (await readFactoryDefinition(deps, deps.db, factory)) ?? notFound('definition');
  }),

  serve(routes.applyFactoryDefinition, async ({ principal, params, body }) => {
    const outcome = await applyDefinition(deps, principal, params.factoryUid, body);
    switch (outcome.kind) {
      case 'applied':
        return outcome.response;
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
        return tooBusy('Too many checks of definition files wait already, of this caller or of all.');
      case 'too_slow':
        return invalid([{ path: 'files', message: 'take too long to read; send fewer files, or simpler YAML' }]);
    }
  }),
];
