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

/** Asks the service to open a pull request, which makes it an artifact too. A refusal is an answer for the command. */
export async function openPullRequest(
  client: Pick<ServiceClient, 'ask'>,
  body: object,
  signal: AbortSignal,
): Promise<PullRequestAnswer> {
  try {
    // The service has waited as long as reasonable for the code host: the command may try again.
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
