import { maxPreparedOfCaller, maxPreparedOfTeam } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { PrepareAttachmentsResponse } from '@runyard/contract/runs/prepared-attachments';
import { signUrl } from '../../platform/secrets/signed-urls.ts';
import type { Signer } from '../../platform/secrets/signer.ts';
import { notFound, type Refusal, refuse } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { isUuid } from '../../platform/store/database/uuid.ts';
import type { Principal } from '../../team/access/keys/principal.ts';
import { serveOnce } from '../../team/access/serve.ts';
import { readLatestRunId } from '../conversations/read.ts';
import { prepareAttachments } from './attachments/prepare.ts';
import { attachmentUploadTarget } from './signed-targets.ts';

interface PreparedRouteDeps {
  readonly signing: Signer;
  baseUrl(): string;
}

type Files = readonly { readonly filename: string; readonly mime_type: string }[];

/** Routes with which callers prepare the upload of files for a follow-up. */
export const preparedRoutes = (deps: PreparedRouteDeps): readonly ServedRoute[] => {
  const prepare = async (
    tx: Queryable,
    principal: Principal,
    runId: string,
    files: Files,
  ): Promise<readonly string[] | Refusal> => {
    const outcome = await prepareAttachments(tx, principal, runId, files);
    switch (outcome.kind) {
      case 'prepared':
        return outcome.ids;
      case 'not_found':
        return notFound('run');
      case 'full': {
        const most = outcome.of === 'caller' ? `You have ${maxPreparedOfCaller}` : `The team has ${maxPreparedOfTeam}`;
        return refuse('resource_unavailable', {
          detail: `${most} prepared files that no follow-up has used. Send follow-ups with them; unused files are deleted after a day.`,
          headers: { 'retry-after': '60' },
        });
      }
    }
  };

  const answer = (ids: readonly string[], files: Files): PrepareAttachmentsResponse => ({
    attachments: ids.map((id, index) => {
      const { url } = signUrl(deps.signing, deps.baseUrl(), attachmentUploadTarget(id));
      const headers = { 'Content-Type': files[index]?.mime_type ?? 'application/octet-stream' };
      return { attachment_id: id, upload_url: url, upload_target: { url, method: 'PUT', headers, fields: [] } };
    }),
  });

  return [
    serveOnce(routes.prepareRunAttachments, {
      work: (tx, { principal, params, body }) => prepare(tx, principal, params.runId, body.files),
      answer: (ids, { body }) => answer(ids, body.files),
    }),

    serveOnce(routes.prepareConversationAttachments, {
      work: async (tx, { principal, params, body }) => {
        const { conversationId } = params;
        const runId = isUuid(conversationId) ? await readLatestRunId(tx, principal.teamId, conversationId) : undefined;
        return runId === undefined ? notFound('conversation') : await prepare(tx, principal, runId, body.files);
      },
      answer: (ids, { body }) => answer(ids, body.files),
    }),
  ];
};
