import { routes } from '@runyard/contract/routes';
import type { Domain } from '../../../platform/domain.ts';
import { serveRun } from '../../../runs/executions/run-tokens/sessions.ts';
import { refusalOfHost } from '../../../runs/repositories/pull-requests/open.ts';
import { type AnswerDeps, answerOnGithub } from './answer.ts';

/** The route with which runs write on GitHub. */
export const githubAnswersDomain = (deps: AnswerDeps): Domain => ({
  name: 'github answers',
  routes: () => [
    serveRun(routes.answerOnGithub, async ({ session, body }) => {
      const answered = await answerOnGithub(deps, session, body);
      return answered.kind === 'written' ? answered.response : refusalOfHost(answered);
    }),
  ],
});
