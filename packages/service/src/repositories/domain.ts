import type { Domain } from '../domain.ts';
import { deletePushes } from './pushes/record.ts';

/** Pushes and pull requests of runs. */
export const repositoriesDomain: Domain = {
  name: 'repositories',
  retention: { deleteRunDetail: deletePushes },
};
