import type { Domain } from '../../platform/domain.ts';
import type { Database } from '../../platform/store/database/database.ts';
import type { ServiceSecrets } from '../../team/redaction/agent-text.ts';
import { deletePushes } from './pushes/record.ts';
import { giveUpUnanswered } from './pushes/unanswered.ts';

/** Pushes and pull requests of runs. */
export const repositoriesDomain = (deps: ServiceSecrets & { readonly db: Database }): Domain => ({
  name: 'repositories',
  retention: { deleteRunDetail: deletePushes },
  loops: async () => [{ name: 'pushes without an answer', everyMs: 600_000, work: () => giveUpUnanswered(deps) }],
});
