/** Explains the error codes. Apart from the catalogue, because every client contains that, and only the service shows these texts. */
import type { errorCatalogue } from './error-catalogue.ts';

/** Meaning of each error and the next step, for the page to which `type` leads. */
export const errorExplanations: Readonly<Record<keyof typeof errorCatalogue, string>> = {
  insufficient_credits: 'The team has no credits left. Add credits, or ask an administrator to raise the limit.',
  feature_not_available: 'The feature is switched off for this team. An administrator can switch it on.',
  external_authentication_required:
    'An external service is not authorized, or repositories are not accessible with the credential at hand. Store a credential for the code host with `bin/runyard code-hosts add`, or `POST /api/v1/code-hosts`, and start the run again. `inaccessible_repos` names the repositories.',
  not_authorized: 'The key is valid but lacks the permission, or belongs to another team.',
  invalid_request: 'The request is malformed. `errors` has each wrong member and what is expected for it.',
  resource_not_found: 'The resource does not exist, was deleted, or belongs to another team.',
  budget_exceeded: "The team's spending budget is reached. An administrator can raise it.",
  integration_disabled: 'The integration is switched off for this team.',
  integration_not_configured: 'The setup of the integration is not complete. `setup_url` leads to it.',
  operation_not_supported: 'The operation does not exist for this kind of run, conversation or artifact.',
  environment_setup_failed:
    'A clone, a setup command, the working directory or an MCP server failed before the agent began. The message has the end of its output.',
  content_policy_violation: 'The prompt or a setup command was flagged.',
  result_invalid:
    'The run has an `output_schema`, and its agent submitted no result that matches it, even after it got the reason. The message has the path and the reason. Change the prompt or the schema, or send a follow-up.',
  checks_failed:
    'A check of the run failed, also after its output went back to the agent. The message has the end of the output. Read the check in the timeline, and send a follow-up or start the run again.',
  conflict: 'The resource is in a state that forbids the request right now. Read it again and retry.',
  authentication_required: 'The key is missing, malformed, expired or revoked. Send `Authorization: Bearer <key>`.',
  resource_unavailable:
    'Capacity is full (429), a sandbox could not be created (500), or the database is unreachable or the disk is full (503). It is retried automatically; `Retry-After` tells when to call again. A run ends with it at once if its model provider cannot be reached.',
  internal_error: 'An unexpected error in the service. The log line with the same `trace_id` has the cause.',
  infrastructure_timeout: 'The run passed its maximum runtime and was ended.',
  agent_process_failed:
    'The agent process ended unexpectedly after its setup: it crashed, ran out of memory, or its worker was lost.',
  agent_stream_network_error:
    'The connection to the model broke after the agent had run actions. A retry would repeat these actions, so it is left to you: send a follow-up, or start the run again.',
  agent_stream_failure:
    'The model answered with an error after the agent had run actions. A retry would repeat these actions, so it is left to you: send a follow-up, or start the run again.',
};
