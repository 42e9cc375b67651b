import type { OpenPullRequest, OpenPullRequestResponse } from '@runyard/contract/agent/pull-requests';
import type { ServiceClient } from '../service/client.ts';
import { ServiceRefusal } from '../service/errors.ts';

/** A request of the command `pull-request` to the agent. The service checks the request. */
export interface PullRequestSocketRequest {
  readonly pull_request: OpenPullRequest;
}

export type PullRequestAnswer =
  | { readonly ok: true; readonly url: string; readonly is_new: boolean }
  | { readonly ok: false; readonly message: string };

/**
 * Asks the service to open a pull request. The service also records the pull request as an artifact. If the service refuses, returns
 * the refusal as the answer to the command.
 */
export async function openPullRequest(
  client: Pick<ServiceClient, 'ask'>,
  body: object,
  signal: AbortSignal,
): Promise<PullRequestAnswer> {
  try {
    // The request is not repeated after the status 503, because the service has then already waited long for the code host. The
    // command reports the failure, and its caller may try again.
    const finalStatuses = [503];
    const { url, is_new } = await client.ask<OpenPullRequestResponse>('POST', 'pull-requests', {
      body,
      signal,
      finalStatuses,
    });
    return { ok: true, url, is_new };
  } catch (error) {
    if (error instanceof ServiceRefusal) return { ok: false, message: error.detail };
    throw error;
  }
}
