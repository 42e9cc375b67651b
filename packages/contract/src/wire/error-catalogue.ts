/** The error codes of the API. This file does not load zod, because every client contains this file. */

/** State of a run after an error; `null` if the error is not about a run. */
export type ErrorRunState = 'FAILED' | 'ERROR' | null;

/** One row of the API's catalogue of errors. */
export interface ErrorKind {
  /** HTTP status; absent if the status can differ. */
  readonly status: number;
  /** RFC 7807 `title`. */
  readonly title: string;
  /** True: the service may repeat the failed work by itself, and callers may repeat their request. */
  readonly retryable: boolean;
  /** State of a run with this error: FAILED for user errors, ERROR for platform errors. */
  readonly runState: ErrorRunState;
  /** Members that this code adds to the problem document. */
  readonly extraFields: readonly string[];
}

const userError = { retryable: false, runState: 'FAILED', extraFields: [] } as const;
const platformError = { retryable: false, runState: 'ERROR', extraFields: [] } as const;

/**
 * All codes that the error of a request or of a run can have. Published clients know these codes, so no code is ever renamed or removed.
 */
export const errorCatalogue = {
  insufficient_credits: {
    ...userError,
    status: 403,
    title: 'Insufficient credits',
  },
  feature_not_available: {
    ...userError,
    status: 403,
    title: 'Feature not available',
  },
  external_authentication_required: {
    ...userError,
    status: 401,
    title: 'External authentication required',
    extraFields: ['provider', 'auth_url', 'inaccessible_repos'],
  },
  not_authorized: {
    ...userError,
    status: 403,
    title: 'Not authorized',
  },
  invalid_request: {
    ...userError,
    status: 400,
    title: 'Invalid request',
    extraFields: ['errors'],
  },
  resource_not_found: {
    ...userError,
    status: 404,
    title: 'Resource not found',
  },
  budget_exceeded: {
    ...userError,
    status: 403,
    title: 'Budget exceeded',
  },
  integration_disabled: {
    ...userError,
    status: 403,
    title: 'Integration disabled',
  },
  integration_not_configured: {
    ...userError,
    status: 400,
    title: 'Integration not configured',
    extraFields: ['integration_name', 'setup_url'],
  },
  operation_not_supported: {
    ...userError,
    status: 422,
    title: 'Operation not supported',
  },
  environment_setup_failed: {
    ...userError,
    status: 500,
    title: 'Environment setup failed',
  },
  content_policy_violation: {
    ...userError,
    status: 403,
    title: 'Content policy violation',
  },
  result_invalid: {
    ...userError,
    status: 422,
    title: 'Result invalid',
  },
  checks_failed: {
    ...userError,
    status: 422,
    title: 'Checks failed',
  },
  conflict: {
    ...userError,
    status: 409,
    title: 'Conflict',
    retryable: true,
  },
  authentication_required: {
    ...platformError,
    status: 401,
    title: 'Authentication required',
  },
  resource_unavailable: {
    ...platformError,
    status: 429,
    title: 'Resource unavailable',
    retryable: true,
  },
  internal_error: {
    ...platformError,
    status: 500,
    title: 'Internal error',
    retryable: true,
  },
  infrastructure_timeout: {
    ...platformError,
    status: 500,
    title: 'Infrastructure timeout',
  },
  agent_process_failed: {
    ...platformError,
    status: 500,
    title: 'Agent process failed',
  },
  agent_stream_network_error: {
    ...platformError,
    status: 500,
    title: 'Agent stream network error',
  },
  agent_stream_failure: {
    ...platformError,
    status: 500,
    title: 'Agent stream failure',
  },
} as const satisfies Record<string, ErrorKind>;
