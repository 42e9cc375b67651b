import { routes } from '@runyard/contract/routes';
import { signUrl } from '../../platform/secrets/signed-urls.ts';
import type { Signer } from '../../platform/secrets/signer.ts';
import { invalid, notFound, refuse } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { isUuid } from '../../platform/store/database/uuid.ts';
import type { Principal } from '../../team/access/keys/principal.ts';
import { serve } from '../../team/access/serve.ts';
import { readTimeline } from '../executions/timeline/timeline.ts';
import { readRunChanges } from '../files/changes/read.ts';
import { readLatestHandoff } from '../files/handoffs/read.ts';
import { blobTarget } from '../files/signed-targets.ts';
import { countRuns } from './list/count.ts';
import { listRuns } from './list/list.ts';
import { harnessUsageOf } from './read/harness-usage.ts';
import { findConversationRedirect, findRun, findSessionRedirect, isVisibleRun, readRunItem } from './read/read.ts';
import type { ReadContext } from './read/run-items.ts';

interface ReadRouteDeps {
  readonly db: Database;
  readonly signing: Signer;
  baseUrl(): string;
  filesUrl(): string;
}

const contextOf = (deps: ReadRouteDeps, principal: Principal): ReadContext => ({
  teamId: principal.teamId,
  teamUid: principal.teamUid,
  baseUrl: deps.baseUrl(),
});

/**
 * Routes that read runs: one run, the list, usage and timeline, the files that a run hands off, and the redirects for links of sessions and
 * conversations.
 */
export const readRoutes = (deps: ReadRouteDeps): readonly ServedRoute[] => {
  const { db, signing } = deps;
  return [
    serve(routes.getRun, async ({ params, principal }) => {
      return (await readRunItem(db, contextOf(deps, principal), params.runId)) ?? notFound('run');
    }),

    serve(routes.listRuns, async ({ query, principal }) => {
      const outcome = await listRuns(db, deps.signing, contextOf(deps, principal), query);
      switch (outcome.kind) {
        case 'ok':
          return outcome.page;
        case 'invalid':
          return invalid(outcome.faults);
        case 'not_available':
          return refuse('feature_not_available', { detail: outcome.detail });
      }
    }),

    serve(routes.countRuns, async ({ query, principal }) => {
      const outcome = await countRuns(db, principal.teamId, query, new Date());
      switch (outcome.kind) {
        case 'ok':
          return outcome.counts;
        case 'invalid':
          return invalid(outcome.faults);
        case 'not_available':
          return refuse('feature_not_available', { detail: outcome.detail });
      }
    }),

    serve(routes.getHarnessUsage, async ({ params, principal }) => {
      const run = await findRun(db, principal.teamId, params.runId);
      return run ? await harnessUsageOf(db, run) : notFound('run');
    }),

    serve(routes.getRunTimeline, async ({ params, principal }) => {
      if (!(await isVisibleRun(db, principal.teamId, params.runId))) return notFound('run');
      return { events: await readTimeline(db, params.runId) };
    }),

    serve(routes.getRunChanges, async ({ params, principal }) => {
      const run = await findRun(db, principal.teamId, params.runId);
      if (!run) return notFound('run');
      return await readRunChanges(db, run.id, run.state === 'INPROGRESS' || run.state === 'BLOCKED');
    }),

    serve(routes.listHandoffAttachments, async ({ params, principal }) => {
      if (!(await isVisibleRun(db, principal.teamId, params.runId))) return notFound('run');
      const files = await readLatestHandoff(db, params.runId);
      return {
        attachments: files.map(({ id, filename, mimeType, sizeBytes }) => ({
          attachment_id: id,
          filename,
          size_bytes: sizeBytes,
          download_url: signUrl(signing, deps.filesUrl(), blobTarget('handoff', id)).url,
          ...(mimeType === null ? {} : { mime_type: mimeType }),
        })),
      };
    }),

    // The redirects need no key, because requests and answers contain only ids.
    serve(routes.checkSessionRedirect, async ({ params: { sessionUuid } }) => {
      const redirect = isUuid(sessionUuid) ? await findSessionRedirect(db, sessionUuid) : null;
      if (!redirect) return refuse('resource_not_found', { detail: 'There is no such session.' });
      return redirect.conversationId === undefined ? {} : { conversation_id: redirect.conversationId };
    }),

    serve(routes.checkConversationRedirect, async ({ params: { conversationId } }) => {
      const redirect = isUuid(conversationId) ? await findConversationRedirect(db, conversationId) : null;
      if (!redirect) return refuse('resource_not_found', { detail: 'There is no such conversation.' });
      return redirect.sessionId === undefined ? {} : { session_id: redirect.sessionId };
    }),
  ];
};
