/** Checks files of a definition without the team that they are for. */
import type { ValidateFactoryFilesResponse } from '@runyard/contract/factories/factory-definitions';
import { schemaVersion } from '@runyard/contract/factories/files/json-schemas';
import { openBoundedThread } from '../../platform/threads/bounded-thread.ts';
import type { Models } from '../../team/models/models.ts';
import type { CheckedFiles, FilesToCheck } from './check-files.ts';
import { noticesOf } from './notices.ts';

/** `too_slow`: the files take too long to read. `busy`: too many checks wait. */
export type Validated =
  | { readonly kind: 'checked'; readonly response: ValidateFactoryFilesResponse }
  | { readonly kind: 'too_slow' | 'busy' };

/** The checks that only an apply does. For example, a hostile skill may take 100 ms to read. */
const notRun = ['environments', 'models', 'secrets', 'mcp_servers', 'webhooks', 'skills'];

/** All callers without a key wait as one team. */
const keyless = 'keyless';

export type FileChecks = ReturnType<typeof openFileChecks>;

/** Opens the thread that reads the files: hostile YAML of a few hundred KB takes more than a second, measured with yaml 2.9.1. */
export function openFileChecks(models: Models) {
  const thread = openBoundedThread<FilesToCheck, CheckedFiles>({
    module: new URL('./check-files-worker.ts', import.meta.url),
    limitMs: 5_000,
    waiting: { waiting: 50, waitingPerTeam: 5 },
    isLast: () => true,
  });
  return {
    /** Returns the faults of the files, and the names that were not looked up. Reads and changes nothing of a team. */
    validate: async (teamId: string | undefined, files: FilesToCheck): Promise<Validated> => {
      const outcome = await thread.run(teamId ?? keyless, files);
      return outcome.kind === 'done'
        ? { kind: 'checked', response: toResponse(models, outcome.message) }
        : { kind: outcome.kind };
    },
    close: thread.close,
  };
}

function toResponse(models: Models, checked: CheckedFiles): ValidateFactoryFilesResponse {
  const { code, faults, deferred } = checked;
  return {
    valid: faults.length === 0,
    schema_version: schemaVersion,
    diagnostics: faults.map(({ file, ...fault }) => ({ code, path: file, ...fault })),
    deferred_resolutions: [...deferred],
    state_dependent_checks_not_run: notRun,
    validation_scope: {
      parser: 'checked',
      state_independent: code === 'FF_INVALID_FILE' ? 'not_run' : 'checked',
      state_dependent: 'not_checked',
    },
    notices: noticesOf(models, checked),
  };
}
