import type { Domain } from '../../platform/domain.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { deleteRunDetail } from './delete/delete-detail.ts';
import { indexRunWords, readWaiting, runsPerTurn } from './list/search-index.ts';

export const runsDomain = ({ db }: { readonly db: Database }): Domain => ({
  name: 'runs',
  retention: { deleteRunDetail },
  loops: async () => [
    {
      name: 'the words of new runs',
      everyMs: 1_000,
      due: [readWaiting],
      work: () => indexRunWords(db, runsPerTurn),
    },
  ],
});
