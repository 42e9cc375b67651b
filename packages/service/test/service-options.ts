import type { AdmitModelRequest } from '../src/edges/gateway/models/admission.ts';
import type { ClientTimeouts } from '../src/edges/http/server/make-app.ts';
import type { BodyLimits } from '../src/platform/bodies/body-budget.ts';
import type { StartDeliveries } from '../src/triggers/starts/deliveries/start-deliveries.ts';

/** Options of a service of the tests. */
export interface TestServiceOptions {
  readonly timeouts?: ClientTimeouts;
  readonly env?: Record<string, string>;
  readonly admitModelRequest?: AdmitModelRequest;
  readonly startDeliveries?: StartDeliveries;
  /** Secrets that must not reach the store, besides run tokens. */
  readonly secrets?: readonly string[];
  /** Opens a proxy to the database of this URL; returns the URL of the proxy. Default: a direct connection. */
  readonly through?: (databaseUrl: string) => Promise<string>;
  readonly bodyLimits?: BodyLimits;
}
