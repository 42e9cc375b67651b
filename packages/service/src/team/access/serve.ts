import type { RepeatableRequest } from '../../platform/idempotency/once.ts';
import { serveFor } from '../../platform/serving/served-route.ts';
import type { Principal } from './keys/principal.ts';

/** These functions pair each route with its handler: routes for the owners of keys, and routes for everyone. */
export const { serve, serveOnce, serveRepeatable } = serveFor<Principal, null, RepeatableRequest>();
