import { routes } from '@runyard/contract/routes';
import { isTerminal } from '@runyard/contract/run-states';
import type { FastifyInstance } from 'fastify';
import { type ConversationRun, readConversation, readConversationRuns } from '../../conversations/read.ts';
import { hasTranscript } from '../../conversations/transcript.ts';
import { findRun } from '../../runs/read/read.ts';
import { isUuid } from '../../store/database/uuid.ts';
import { addRoute, redirect } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { notFound, refuse } from '../server/problem.ts';
import { signUrl } from '../server/signed-urls.ts';
import { blobTarget } from './blobs.ts';

/** Registers conversation and transcript, of a run and of a conversation. */
export function registerConversationRoutes(app: FastifyInstance, deps: ServiceDeps): void {
  const { db } = deps;
  const conversationRuns = async (teamId: string, id: string) =>
    isUuid(id) ? await readConversationRuns(db, teamId, id) : [];

  /** Why these runs have no conversation: what was said is only in a format that nothing here reads, or nothing was said. */
  const refuseUnread = async (runs: readonly ConversationRun[], nothing: string) => {
    const raw =
      runs.every(({ state }) => isTerminal(state)) &&
      (await hasTranscript(
        db,
        runs.map(({ id }) => id),
      ));
    return raw
      ? refuse('operation_not_supported', { detail: 'The harness gave only raw output; download the transcript.' })
      : refuse('resource_not_found', { detail: nothing });
  };

  addRoute(app, routes.getRunConversation, async ({ params, principal }) => {
    const run = await findRun(db, principal.teamId, params.runId);
    if (!run) return notFound('run');
    const conversation = await readConversation(db, run.conversationId, [run]);
    return conversation ?? refuseUnread([run], 'The run has no conversation yet.');
  });

  addRoute(app, routes.getConversation, async ({ params, principal }) => {
    const runs = await conversationRuns(principal.teamId, params.conversationId);
    if (runs.length === 0) return notFound('conversation');
    const conversation = await readConversation(db, params.conversationId, runs);
    return conversation ?? refuseUnread(runs, 'Nothing was said in the conversation yet.');
  });

  addRoute(app, routes.getRunTranscript, async ({ params, principal, reply }) => {
    const run = await findRun(db, principal.teamId, params.runId);
    if (!run) return notFound('run');
    if (!(await hasTranscript(db, [run.id]))) {
      return refuse('resource_not_found', { detail: 'The run has no transcript yet.' });
    }
    return redirect(reply, signUrl(deps.signing, deps.baseUrl(), blobTarget('transcript', run.id)).url);
  });

  addRoute(app, routes.getConversationTranscript, async ({ params, principal, reply }) => {
    const runs = await conversationRuns(principal.teamId, params.conversationId);
    if (runs.length === 0) return notFound('conversation');
    if (runs.some(({ harness }) => harness === 'oz')) {
      return refuse('operation_not_supported', {
        status: 400,
        detail:
          "The built-in harness's conversation has no raw download; read the conversation, or the transcript of its run.",
      });
    }
    const ids = runs.map(({ id }) => id);
    if (!(await hasTranscript(db, ids))) {
      return refuse('resource_not_found', { detail: 'The conversation has no transcript yet.' });
    }
    const target = blobTarget('conversation-transcript', params.conversationId);
    return redirect(reply, signUrl(deps.signing, deps.baseUrl(), target).url);
  });
}
