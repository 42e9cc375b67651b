/** Checks the files of a definition without data of a team. */
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

/**
 * The parts of a definition that are not checked here, but only when the definition is applied. Most of them need data of the team.
 * Skills are not checked because reading a hostile skill may take 100 ms.
 */
const notRun = ['environments', 'models', 'secrets', 'mcp_servers', 'webhooks', 'skills'];

/** All callers without a key count as one team when they wait for the thread. */
const keyless = 'keyless';

export type FileChecks = ReturnType<typeof openFileChecks>;

/**
 * Returns functions that check files in a separate thread. Parsing a few hundred KB of hostile YAML takes more than a second (measured
 * with yaml 2.9.1). Without the thread, this would block the process.
 */
export function openFileChecks(models: Models) {
  const thread = openBoundedThread<FilesToCheck, CheckedFiles>({
    module: new URL('./check-files-worker.ts', import.meta.url),
    limitMs: 5_000,
    waiting: { waiting: 50, waitingPerTeam: 5 },
    isLast: () => true,
  });
  return {
    /**
     * Returns the faults of the files, and the names in them that were not looked up. Does not access data of a team; `teamId` only
     * decides whose turn is next.
     */
    validate: async (teamId: string | undefined, request: FilesToCheck): Promise<Validated> => {
      const outcome = await thread.run(teamId ?? keyless, request);
      return outcome.kind === 'done'
        ? { kind: 'checked', response: toResponse(models, outcome.message) }
        : { kind: outcome.kind };
    },
    close: thread.close,
  };
}

function toResponse(models: Models, checked: CheckedFiles): ValidateFactoryFilesResponse {
  const { isRead, faults, deferred } = checked;
  return {
    valid: faults.length === 0,
    schema_version: schemaVersion,
    diagnostics: faults.map(({ file, ...fault }) => ({ code: 'FF_INVALID_VALUE', path: file, ...fault })),
    deferred_resolutions: [...deferred],
    state_dependent_checks_not_run: notRun,
    validation_scope: {
      parser: 'checked',
      state_independent: isRead ? 'checked' : 'not_run',
      state_dependent: 'not_checked',
    },
    notices: noticesOf(models, checked),
  };
}
