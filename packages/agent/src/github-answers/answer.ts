import type { GithubAnswerResponse } from '@runyard/contract/environments/github-tools';
import type { SubmitAnswer } from '../results/run-result.ts';
import type { ServiceClient } from '../service/client.ts';
import { ServiceRefusal } from '../service/errors.ts';

// The parts of the program stay few if both are loaded together.
export { describeGithubTools } from './describe.ts';

/** Writes on GitHub with a tool. The message is the page of what was written, or why nothing was written. */
export type AnswerOnGithub = (tool: string, input: unknown, gone: AbortSignal) => Promise<SubmitAnswer>;

/** Asks the service to write on GitHub. The service checks the request: the sandbox has no token of GitHub. */
export const answerOnGithub =
  (client: Pick<ServiceClient, 'ask'>, stop: AbortSignal): AnswerOnGithub =>
  async (tool, input, gone) => {
    try {
      // The request is not repeated after the status 503, because the service has waited for GitHub already.
      const { url, is_new } = await client.ask<GithubAnswerResponse>('POST', 'github-answers', {
        body: { tool, input },
        signal: AbortSignal.any([stop, gone]),
        finalStatuses: [503],
      });
      return { ok: true, message: is_new ? url : `${url} (this run had done it before)` };
    } catch (error) {
      if (error instanceof ServiceRefusal) return { ok: false, message: error.detail };
      throw error;
    }
  };
