import { Readable } from 'node:stream';
import { findHarness } from '@runyard/contract/agent/harness-presets/presets';
import { routes } from '@runyard/contract/routes';
import { isTerminal } from '@runyard/contract/runs/run-states';
import type { Route } from '@runyard/contract/wire/route';
import { atPace } from '../../platform/bodies/answered-client.ts';
import type { BodyBudget } from '../../platform/bodies/body-budget.ts';
import { signUrl } from '../../platform/secrets/signed-urls.ts';
import type { Signer } from '../../platform/secrets/signer.ts';
import { invalid, notFound, type Refusal, refuse, tooBusy } from '../../platform/serving/refusal.ts';
import type { Call, ServedRoute } from '../../platform/serving/served-route.ts';
import { listIdentity, readCursor, writeCursor } from '../../platform/store/cursor.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { isUuid } from '../../platform/store/database/uuid.ts';
import type { Principal } from '../../team/access/keys/principal.ts';
import { serve } from '../../team/access/serve.ts';
import { conversationJson } from '../conversations/as-json.ts';
import { findInConversation } from '../conversations/find.ts';
import { type PageEnd, readMessagePage } from '../conversations/page.ts';
import type { ConversationPart } from '../conversations/parts.ts';
import {
  type ConversationRun,
  readConversationRuns,
  readCost,
  readMessageParts,
  readPartCost,
  readParts,
  sizeOfConversation,
} from '../conversations/read.ts';
import { readTitle } from '../conversations/title.ts';
import { hasTranscript } from '../conversations/transcript.ts';
import { whyNothingWasSaid } from '../executions/waiting/read-waits.ts';
import { blobTarget } from '../files/signed-targets.ts';
import { ListTooSlow, whileFewAreSlow } from './list/slow-lists.ts';
import { findRun } from './read/read.ts';

const tooManyReads = (): Refusal => tooBusy('Too many long conversations are being read.');

const rawOutputOnly = (): Refusal =>
  refuse('operation_not_supported', { detail: 'The harness gave only raw output; download the transcript.' });

/** Describes a client that reads a conversation. */
type Reader = Pick<Call<Route, Principal, null>, 'closed' | 'cut'> & { readonly principal: Principal };

interface ConversationRouteDeps {
  readonly db: Database;
  readonly conversationReads: BodyBudget;
  readonly signing: Signer;
  filesUrl(): string;
}

/** Returns the functions that answer with a conversation, or with the reason why there is none. */
function conversationAnswers({ db, conversationReads: reads }: ConversationRouteDeps) {
  const conversationRuns = async (teamId: string, id: string) =>
    isUuid(id) ? await readConversationRuns(db, teamId, id) : [];

  /** Refuses with `nothing` and the reason why the newest of the runs has no message yet. */
  const refuseUnsaid = async (teamId: string, runs: readonly ConversationRun[], nothing: string) => {
    const newest = runs.at(-1);
    const why = newest ? [await whyNothingWasSaid(db, teamId, newest)] : [];
    return refuse('resource_not_found', { detail: [nothing, ...why].join(' ') });
  };

  /**
   * Returns the refusal that says why these runs have no conversation: there are no messages, or only messages in a format that the service
   * cannot read.
   */
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
    { principal: { teamId }, closed, cut }: Reader,
    conversationId: string,
    runs: readonly ConversationRun[],
    message?: () => AsyncGenerator<ConversationPart>,
  ): Promise<Readable | Refusal | null> => {
    const over = closed();
    const bytes = await sizeOfConversation(db, runs);
    const place = await reads.enter({ teamId }, message ? readPartCost(bytes) : readCost(bytes), over);
    // If the client has closed its connection, this answer is sent too, but nobody reads it.
    if (typeof place === 'string') return tooManyReads();
    if (over.aborted) place.release();
    else over.addEventListener('abort', place.release);
    const title = await readTitle(db, teamId, conversationId);
    const json = await conversationJson({ id: conversationId, title }, message ? message() : readParts(db, runs));
    return json && Readable.from(atPace(json, cut), { objectMode: false, highWaterMark: 64 * 1024 });
  };

  return { conversationRuns, refuseUnsaid, refuseUnread, answer };
}

/** Routes that read the conversation and the transcript of a run or of a conversation. */
export function conversationRoutes(deps: ConversationRouteDeps): readonly ServedRoute[] {
  const { db, conversationReads: reads } = deps;
  const { conversationRuns, refuseUnsaid, refuseUnread, answer } = conversationAnswers(deps);
  const cursorOf = (runId: string) => listIdentity(['messages', runId]);
  /** Returns the end of the page to which a cursor points; undefined if the cursor is not valid for this run. */
  const readEnd = (runId: string, cursor: string): PageEnd | undefined => {
    const read = readCursor(deps.signing, cursorOf(runId), cursor);
    if (!read.ok) return undefined;
    return { before: Number(read.position.id), open: JSON.parse(read.position.value ?? '[]') as string[] };
  };

  return [
    serve(routes.listRunMessages, async ({ params, query, principal, closed }) => {
      const run = await findRun(db, principal.teamId, params.runId);
      if (!run) return notFound('run');
      if (findHarness(run.harness)?.hasOnlyRawOutput) return rawOutputOnly();
      const end = query.before === undefined ? undefined : readEnd(run.id, query.before);
      if (query.before !== undefined && !end)
        return invalid([{ path: 'before', message: 'must be `older` of a page of this run' }]);
      const place = await reads.enter(
        { teamId: principal.teamId },
        readPartCost(await sizeOfConversation(db, [run])),
        closed(),
      );
      if (typeof place === 'string') return tooManyReads();
      try {
        const page = await readMessagePage(db, run.id, { end, limit: query.limit });
        if (!page) return notFound('run');
        const { steps, continued, reached, older } = page;
        const position = older && { id: String(older.before), value: JSON.stringify(older.open) };
        return {
          conversation_id: run.conversationId,
          steps,
          continued,
          reached: String(reached),
          ...(position ? { older: writeCursor(deps.signing, cursorOf(run.id), position) } : {}),
        };
      } finally {
        place.release();
      }
    }),

    serve(routes.findInRun, async ({ params, query, principal }) => {
      const { teamId } = principal;
      const run = await findRun(db, teamId, params.runId);
      if (!run) return notFound('run');
      if (findHarness(run.harness)?.hasOnlyRawOutput) return rawOutputOnly();
      try {
        return await whileFewAreSlow(db, teamId, (tx) => findInConversation(tx, run.id, query));
      } catch (error) {
        if (!(error instanceof ListTooSlow)) throw error;
        return tooBusy('The search takes too long.');
      }
    }),

    serve(routes.getRunMessage, async (call) => {
      const { params, principal } = call;
      const run = await findRun(db, principal.teamId, params.runId);
      if (!run) return notFound('run');
      const seq = /^\d{1,15}$/.test(params.messageSeq) ? Number(params.messageSeq) : 0;
      const message = await answer(call, run.conversationId, [run], () => readMessageParts(db, run, seq));
      return message ?? notFound('message');
    }),

    serve(routes.getRunConversation, async (call) => {
      const { params, principal } = call;
      const run = await findRun(db, principal.teamId, params.runId);
      if (!run) return notFound('run');
      if (findHarness(run.harness)?.hasOnlyRawOutput) return rawOutputOnly();
      const conversation = await answer(call, run.conversationId, [run]);
      return conversation ?? refuseUnread(principal, [run], 'The run has no conversation yet.');
    }),

    serve(routes.getConversation, async (call) => {
      const { params, principal } = call;
      const runs = await conversationRuns(principal.teamId, params.conversationId);
      if (runs.length === 0) return notFound('conversation');
      if (runs.every(({ harness }) => findHarness(harness)?.hasOnlyRawOutput)) return rawOutputOnly();
      const conversation = await answer(call, params.conversationId, runs);
      return conversation ?? refuseUnread(principal, runs, 'The conversation has no messages yet.');
    }),

    serve(routes.getRunTranscript, async ({ params, principal }) => {
      const run = await findRun(db, principal.teamId, params.runId);
      if (!run) return notFound('run');
      if (!(await hasTranscript(db, [run.id]))) {
        return refuseUnsaid(principal.teamId, [run], 'The run has no transcript yet.');
      }
      return { location: signUrl(deps.signing, deps.filesUrl(), blobTarget('transcript', run.id)).url };
    }),

    serve(routes.getConversationTranscript, async ({ params, principal }) => {
      const runs = await conversationRuns(principal.teamId, params.conversationId);
      if (runs.length === 0) return notFound('conversation');
      if (runs.some(({ harness }) => findHarness(harness)?.isBuiltIn)) {
        return refuse('operation_not_supported', {
          status: 400,
          detail:
            "The built-in harness's conversation has no raw download; read the conversation, or the transcript of its run.",
        });
      }
      // A transcript cannot be cut at the place of a fork, so it has only the runs that continue the fork.
      const ids = runs.filter(({ isForked }) => !isForked).map(({ id }) => id);
      if (!(await hasTranscript(db, ids))) {
        return refuseUnsaid(principal.teamId, runs, 'The conversation has no transcript yet.');
      }
      const target = blobTarget('conversation-transcript', params.conversationId);
      return { location: signUrl(deps.signing, deps.filesUrl(), target).url };
    }),
  ];
}
