import type { Domain } from '../domain.ts';
import type { ServiceSecrets } from '../redaction/agent-text.ts';
import type { Database } from '../store/database/database.ts';
import { deletePushes } from './pushes/record.ts';
import { giveUpUnanswered } from './pushes/unanswered.ts';

/** Pushes and pull requests of runs. */
export const repositoriesDomain = (deps: ServiceSecrets & { readonly db: Database }): Domain => ({
  name: 'repositories',
  retention: { deleteRunDetail: deletePushes },
  loops: async () => [{ name: 'pushes without an answer', everyMs: 600_000, work: () => giveUpUnanswered(deps) }],
});
