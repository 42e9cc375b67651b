import type { RepeatableRequest } from '../../../platform/idempotency/once.ts';
import { serveFor } from '../../../platform/serving/served-route.ts';
import type { RunSession } from './sessions.ts';

/** Pair routes for run tokens with their handlers. */
export const {
  serve: serveRun,
  serveOnce: serveRunOnce,
  serveRepeatable: serveRunRepeatable,
} = serveFor<null, RunSession, RepeatableRequest>();
