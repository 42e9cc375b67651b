import type { Domain } from '../../platform/domain.ts';
import { deleteResults } from './results.ts';

export const resultsDomain: Domain = { name: 'results', retention: { deleteRunDetail: deleteResults } };
