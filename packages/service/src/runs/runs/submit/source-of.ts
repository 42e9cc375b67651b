import type { RequestOrigin } from '../../../platform/serving/served-route.ts';

/**
 * Returns the source of a run that a request creates. The User-Agent identifies the `runyard` command; all other clients are the API.
 */
export const sourceOf = ({ userAgent }: Pick<RequestOrigin, 'userAgent'>): 'CLI' | 'API' =>
  userAgent?.startsWith('runyard-cli') ? 'CLI' : 'API';
