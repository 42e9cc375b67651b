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
  /** Meaning of the error and the next step, for the page to which `type` leads. */
  readonly explanation: string;
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
    explanation: 'The team has no credits left. Add credits, or ask an administrator to raise the limit.',
  },
  feature_not_available: {
    ...userError,
    status: 403,
    title: 'Feature not available',
    explanation: 'The feature is switched off for this team. An administrator can switch it on.',
  },
  external_authentication_required: {
    ...userError,
    status: 401,
    title: 'External authentication required',
    extraFields: ['provider', 'auth_url', 'inaccessible_repos'],
    explanation:
      'An external service is not authorized, or repositories are not accessible with the credential at hand. Store a credential for the code host with `bin/runyard code-hosts add`, or `POST /api/v1/code-hosts`, and start the run again. `inaccessible_repos` names the repositories.',
  },
  not_authorized: {
    ...userError,
    status: 403,
    title: 'Not authorized',
    explanation: 'The key is valid but lacks the permission, or belongs to another team.',
  },
  invalid_request: {
    ...userError,
    status: 400,
    title: 'Invalid request',
    extraFields: ['errors'],
    explanation: 'The request is malformed. `errors` has each wrong member and what is expected for it.',
  },
  resource_not_found: {
    ...userError,
    status: 404,
    title: 'Resource not found',
    explanation: 'The resource does not exist, was deleted, or belongs to another team.',
  },
  budget_exceeded: {
    ...userError,
    status: 403,
    title: 'Budget exceeded',
    explanation: "The team's spending budget is reached. An administrator can raise it.",
  },
  integration_disabled: {
    ...userError,
    status: 403,
    title: 'Integration disabled',
    explanation: 'The integration is switched off for this team.',
  },
  integration_not_configured: {
    ...userError,
    status: 400,
    title: 'Integration not configured',
    extraFields: ['integration_name', 'setup_url'],
    explanation: 'The setup of the integration is not complete. `setup_url` leads to it.',
  },
  operation_not_supported: {
    ...userError,
    status: 422,
    title: 'Operation not supported',
    explanation: 'The operation does not exist for this kind of run, conversation or artifact.',
  },
  environment_setup_failed: {
    ...userError,
    status: 500,
    title: 'Environment setup failed',
    explanation:
      'A clone, a setup command, the working directory or an MCP server failed before the agent began. The message has the end of its output.',
  },
  content_policy_violation: {
    ...userError,
    status: 403,
    title: 'Content policy violation',
    explanation: 'The prompt or a setup command was flagged.',
  },
  conflict: {
    ...userError,
    status: 409,
    title: 'Conflict',
    retryable: true,
    explanation: 'The resource is in a state that forbids the request right now. Read it again and retry.',
  },
  authentication_required: {
    ...platformError,
    status: 401,
    title: 'Authentication required',
    explanation: 'The key is missing, malformed, expired or revoked. Send `Authorization: Bearer <key>`.',
  },
  resource_unavailable: {
    ...platformError,
    status: 429,
    title: 'Resource unavailable',
    retryable: true,
    explanation:
      'Capacity is full (429), a sandbox could not be created (500), or the database is unreachable or the disk is full (503). It is retried automatically; `Retry-After` tells when to call again. A run ends with it at once if its model provider cannot be reached.',
  },
  internal_error: {
    ...platformError,
    status: 500,
    title: 'Internal error',
    retryable: true,
    explanation: 'An unexpected error in the service. The log line with the same `trace_id` has the cause.',
  },
  infrastructure_timeout: {
    ...platformError,
    status: 500,
    title: 'Infrastructure timeout',
    explanation: 'The run passed its maximum runtime and was ended.',
  },
  agent_process_failed: {
    ...platformError,
    status: 500,
    title: 'Agent process failed',
    explanation:
      'The agent process ended unexpectedly after its setup: it crashed, ran out of memory, or its worker was lost.',
  },
  agent_stream_network_error: {
    ...platformError,
    status: 500,
    title: 'Agent stream network error',
    explanation:
      'The connection to the model broke after the agent had run actions. A retry would repeat these actions, so it is left to you: send a follow-up, or start the run again.',
  },
  agent_stream_failure: {
    ...platformError,
    status: 500,
    title: 'Agent stream failure',
    explanation:
      'The model answered with an error after the agent had run actions. A retry would repeat these actions, so it is left to you: send a follow-up, or start the run again.',
  },
} as const satisfies Record<string, ErrorKind>;
