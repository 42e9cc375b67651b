import type { Domain } from '../../platform/domain.ts';
import { sealAgain } from '../../platform/secrets/seal-again.ts';
import { sealedCredentials } from './records.ts';
import { type CodeHostRouteDeps, codeHostRoutes } from './routes.ts';

/** Stores the credentials for code hosts. */
export const codeHostsDomain = (deps: CodeHostRouteDeps): Domain => ({
  name: 'code hosts',
  routes: () => codeHostRoutes(deps),
  sealAgain: () => sealAgain(deps.db, deps.vault, sealedCredentials),
});
