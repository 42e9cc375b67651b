import type { RepeatableRequest } from '../../platform/idempotency/once.ts';
import { serveFor } from '../../platform/serving/served-route.ts';
import type { Principal } from './keys/principal.ts';

/** These functions pair routes for the owners of keys, and routes for everyone, with their handlers. */
export const { serve, serveOnce, serveRepeatable } = serveFor<Principal, null, RepeatableRequest>();
