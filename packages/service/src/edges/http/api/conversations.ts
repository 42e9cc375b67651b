import { Readable } from 'node:stream';
import { isBuiltin } from '@runyard/contract/harness-presets/builtin';
import { routes } from '@runyard/contract/routes';
import { isTerminal } from '@runyard/contract/run-states';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { closedSignal } from '../../../platform/bodies/closed-signal.ts';
import { tooBusy } from '../../../platform/bodies/too-busy.ts';
import { notFound, type Refusal, refuse } from '../../../platform/serving/refusal.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import { conversationJson } from '../../../runs/conversations/as-json.ts';
import {
  type ConversationRun,
  readConversationRuns,
  readParts,
  sizeOfConversation,
} from '../../../runs/conversations/read.ts';
import { readCost } from '../../../runs/conversations/read-limits.ts';
import { hasTranscript } from '../../../runs/conversations/transcript.ts';
import { whyNothingWasSaid } from '../../../runs/executions/waiting/read-waits.ts';
import { findRun } from '../../../runs/runs/read/read.ts';
import type { Principal } from '../../../team/access/keys/principal.ts';
import { addRoute, redirect } from '../server/add-route.ts';
import { atPace } from '../server/client-pace.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { blobTarget } from '../server/signed-targets.ts';
import { signUrl } from '../server/signed-urls.ts';

const rawOutputOnly = (): Refusal =>
  refuse('operation_not_supported', { detail: 'The harness gave only raw output; download the transcript.' });

/** Registers conversation and transcript, of a run and of a conversation. */
export function registerConversationRoutes(app: FastifyInstance, deps: ServiceDeps): void {
  const { db, conversationReads: reads } = deps;
  const conversationRuns = async (teamId: string, id: string) =>
    isUuid(id) ? await readConversationRuns(db, teamId, id) : [];

  /** Refuses with `nothing` and the reason why the newest of the runs has no message yet. */
  const refuseUnsaid = async (teamId: string, runs: readonly ConversationRun[], nothing: string) => {
    const newest = runs.at(-1);
    const why = newest ? [await whyNothingWasSaid(db, teamId, newest)] : [];
    return refuse('resource_not_found', { detail: [nothing, ...why].join(' ') });
  };

  /** Returns why these runs have no conversation: nothing was said, or only in a format that the service does not read. */
  const refuseUnread = async ({ teamId }: Principal, runs: readonly ConversationRun[], nothing: string) => {
    const raw =
      runs.every(({ state }) => isTerminal(state)) &&
      (await hasTranscript(
        db,
        runs.map(({ id }) => id),
      ));
    return raw ? rawOutputOnly() : refuseUnsaid(teamId, runs, nothing);
  };

  const answer = async (
    { teamId }: Principal,
    reply: FastifyReply,
    conversationId: string,
    runs: readonly ConversationRun[],
  ): Promise<Readable | Refusal | null> => {
    const over = closedSignal(reply.raw);
    const place = await reads.enter({ teamId }, readCost(await sizeOfConversation(db, runs)), over);
    // A client that closed its connection gets the same answer, but never reads it.
    if (typeof place === 'string') return tooBusy('Too many long conversations are being read.');
    if (over.aborted) place.release();
    else over.addEventListener('abort', place.release);
    const json = await conversationJson(conversationId, readParts(db, runs));
    return (
      json &&
      Readable.from(
        atPace(json, () => reply.raw.destroy()),
        { objectMode: false, highWaterMark: 64 * 1024 },
      )
    );
  };

  addRoute(app, routes.getRunConversation, async ({ params, principal, reply }) => {
    const run = await findRun(db, principal.teamId, params.runId);
    if (!run) return notFound('run');
    if (run.harness === 'command') return rawOutputOnly();
    const conversation = await answer(principal, reply, run.conversationId, [run]);
    return conversation ?? refuseUnread(principal, [run], 'The run has no conversation yet.');
  });

  addRoute(app, routes.getConversation, async ({ params, principal, reply }) => {
    const runs = await conversationRuns(principal.teamId, params.conversationId);
    if (runs.length === 0) return notFound('conversation');
    if (runs.every(({ harness }) => harness === 'command')) return rawOutputOnly();
    const conversation = await answer(principal, reply, params.conversationId, runs);
    return conversation ?? refuseUnread(principal, runs, 'Nothing was said in the conversation yet.');
  });

  addRoute(app, routes.getRunTranscript, async ({ params, principal, reply }) => {
    const run = await findRun(db, principal.teamId, params.runId);
    if (!run) return notFound('run');
    if (!(await hasTranscript(db, [run.id]))) {
      return refuseUnsaid(principal.teamId, [run], 'The run has no transcript yet.');
    }
    return redirect(reply, signUrl(deps.signing, deps.baseUrl(), blobTarget('transcript', run.id)).url);
  });

  addRoute(app, routes.getConversationTranscript, async ({ params, principal, reply }) => {
    const runs = await conversationRuns(principal.teamId, params.conversationId);
    if (runs.length === 0) return notFound('conversation');
    if (runs.some(({ harness }) => isBuiltin(harness))) {
      return refuse('operation_not_supported', {
        status: 400,
        detail:
          "The built-in harness's conversation has no raw download; read the conversation, or the transcript of its run.",
      });
    }
    const ids = runs.map(({ id }) => id);
    if (!(await hasTranscript(db, ids))) {
      return refuseUnsaid(principal.teamId, runs, 'The conversation has no transcript yet.');
    }
    const target = blobTarget('conversation-transcript', params.conversationId);
    return redirect(reply, signUrl(deps.signing, deps.baseUrl(), target).url);
  });
}
