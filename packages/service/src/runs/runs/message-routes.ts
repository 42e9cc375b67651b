import { maxMessagesOfRun, maxMessagesPerMinute, maxWaitingFollowups } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import { invalid, type Refusal, refuse } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { CodeHosts } from '../../team/code-hosts/code-hosts.ts';
import { refusedByPolicy } from '../../team/content-policy/content-policy.ts';
import { withoutSecrets } from '../../team/redaction/agent-text.ts';
import { serveRunOnce } from '../executions/run-tokens/sessions.ts';
import type { SubmitDeps } from './submit/prepare.ts';
import { refusedChild } from './submit/translate.ts';
import { findUnreadableForSender, type MessageOutcome, sendMessage } from './tree/messages.ts';
import { readChildRunsPermission } from './tree/permission.ts';

type Unsent = Exclude<MessageOutcome, { kind: 'sent' }>;

function refusalOf(outcome: Unsent): Refusal {
  switch (outcome.kind) {
    case 'itself':
      return invalid([{ path: 'run_id', message: 'is your own run' }]);
    case 'not_found':
      return refuse('resource_not_found', { detail: 'There is no such run in the tree of your run.' });
    case 'ended':
      return refuse('conflict', {
        detail: `The run is ${outcome.state} and its sandbox is gone; only the run that started it can continue it.`,
      });
    case 'asks_a_person':
      return refuse('conflict', {
        detail: 'The run waits for the answer of a person. Send the message when it continues.',
      });
    case 'lacks_right':
      return refuse('not_authorized', {
        detail: `The sandbox of the run holds the secret ${outcome.secret}, and an author whose text your run follows may not use this secret.`,
      });
    case 'too_many':
      return refuse('conflict', {
        detail: `This run has sent ${maxMessagesOfRun} messages, which is all that a run may send.`,
      });
    case 'too_often':
      return refuse('resource_unavailable', {
        detail: `A run may send ${maxMessagesPerMinute} messages a minute, and ${maxWaitingFollowups} may wait for a run. Wait, and put more into one.`,
        headers: { 'retry-after': '10' },
      });
    case 'refused':
      return refusedChild(outcome.reason);
  }
}

/** Routes for messages between runs of one tree: a run and all its descendants. */
export const messageRoutes = ({
  executionDeps,
  contentPolicy,
  codeHosts,
}: SubmitDeps & { readonly codeHosts: CodeHosts }): readonly ServedRoute[] => [
  serveRunOnce(routes.sendRunMessage, {
    check: async ({ session, body }) => {
      // Redact values of secrets before the text goes to the other run.
      const text = withoutSecrets(executionDeps, session, body.message);
      const verdict = await contentPolicy?.check(session.teamId, [{ kind: 'prompt', text }]);
      if (verdict && verdict.kind !== 'allowed') return refusedByPolicy(verdict);
      const repository = await findUnreadableForSender({ db: executionDeps.db, codeHosts }, session, body.run_id);
      return repository === null
        ? null
        : refuse('not_authorized', {
            detail: `The workspace of the run has a clone of the private repository ${repository}, and an author whose text your run follows may not read this repository.`,
          });
    },
    work: async (tx, { session, body }) => {
      const maxLive = (await readChildRunsPermission(tx, session))?.max_live ?? 0;
      const sent = await sendMessage(executionDeps, tx, session, body, { maxLive });
      return sent.kind === 'sent' ? { delivery: sent.delivery } : refusalOf(sent);
    },
  }),
];
