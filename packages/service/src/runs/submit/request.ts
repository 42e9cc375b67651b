/** Checks a request body and turns it into a run that may be created. */

import { randomUUIDv7 } from 'node:crypto';
import type { AmbientAgentConfig } from '@runyard/contract/config';

import type { RunAgentRequest } from '@runyard/contract/run-request';
import type { RunSourceType } from '@runyard/contract/states';
import { workerName } from '@runyard/contract/workers';
import type { RunActor } from '../../access/actor.ts';
import type { Principal } from '../../access/keys/principal.ts';
import { findNamedEnvironment } from '../../environments/environments.ts';
import { imageProblem } from '../../environments/image.ts';
import type { Fault } from '../../fault.ts';
import { type DecodedAttachment, decodeAttachments } from '../../files/attachments/decode.ts';
import type { Models } from '../../models/models.ts';
import { readModelChoices } from '../../models/team-models.ts';
import type { Queryable } from '../../store/database/database.ts';
import { defineStatement } from '../../store/database/statement.ts';
import { isUuid } from '../../store/database/uuid.ts';
import { readLineage } from './lineage.ts';
import type { NewRun } from './new-run.ts';
import { checkHarness } from './request-harness.ts';
import { checkMcpServers } from './request-mcp-servers.ts';
import { checkModels } from './request-models.ts';
import { titleOf } from './request-title.ts';

/** A checked request: the run to create, and its decoded files. */
export interface DecodedRunRequest {
  readonly kind: 'ok';
  readonly run: NewRun;
  readonly files: readonly DecodedAttachment[];
}

/** Outcome of the check, each with the HTTP status that it becomes. */
export type RequestOutcome =
  | DecodedRunRequest
  /** 400 */
  | { readonly kind: 'invalid'; readonly faults: readonly Fault[] }
  /** 403 `not_authorized` */
  | { readonly kind: 'forbidden'; readonly detail: string }
  /** 403 `feature_not_available` */
  | { readonly kind: 'not_available'; readonly detail: string }
  /** 503 `resource_unavailable`: the provider of the model has an outage, and the run allows no other model. */
  | { readonly kind: 'model_outage'; readonly detail: string; readonly retryAfterSeconds: number };

/** Values of `worker_host` with which published clients ask for the hosted pool. */
const hostedPool = ['', 'warp', 'runyard'];

/** Returns the self-hosted worker that a configuration names; undefined: the hosted pool. */
export const workerHostOf = ({ worker_host }: Pick<AmbientAgentConfig, 'worker_host'>): string | undefined =>
  hostedPool.includes(worker_host ?? '') ? undefined : worker_host;

const maxConfigLength = 1024 * 1024;
/** The skill is in an index, where PostgreSQL refuses rows over 2,704 bytes. */
const maxSkillLength = 500;
const maxNameLength = 500;

const readConversation = defineStatement({
  name: 'has_conversation_of_team',
  text: 'SELECT FROM runs WHERE conversation_id = $1 AND team_id = $2 LIMIT 1',
  row: {},
});

async function checkConversation(
  db: Queryable,
  teamId: string,
  request: RunAgentRequest,
  faults: Fault[],
): Promise<void> {
  const id = request.conversation_id;
  if (id === undefined) return;
  const found = isUuid(id) ? await db.query(readConversation, [id, teamId]) : [];
  if (found.length === 0) faults.push({ path: 'conversation_id', message: 'there is no such conversation' });
}

function checkConfig(config: AmbientAgentConfig, skillSpec: string | undefined, faults: Fault[]): void {
  const tooLong = (path: string, max: number) => faults.push({ path, message: `must be at most ${max} characters` });
  if ((skillSpec?.length ?? 0) > maxSkillLength) tooLong('skill', maxSkillLength);
  if ((config.name?.length ?? 0) > maxNameLength) tooLong('config.name', maxNameLength);
  if (!workerName.test(workerHostOf(config) ?? 'hosted')) {
    faults.push({
      path: 'config.worker_host',
      message: 'no worker can have this name: it must be 1 to 63 characters of [A-Za-z0-9._-]',
    });
  }
  if (JSON.stringify(config).length > maxConfigLength) faults.push({ path: 'config', message: 'must be at most 1 MB' });
}

function faultOfMissingPrompt({ skill, config }: RunAgentRequest): Fault {
  // Only a rerun has none of these: the schema requires one of them in other requests.
  if (skill === undefined && config?.skill_spec === undefined && config?.skills === undefined) {
    return {
      path: 'prompt',
      message: 'is required: the run that is repeated has no prompt of its own, because it continued a conversation',
    };
  }
  const path = skill ? 'skill' : config?.skill_spec ? 'config.skill_spec' : 'config.skills';
  return { path, message: 'skills cannot be resolved by this service yet; send a prompt' };
}

/** Checks what the schema cannot: everything that the request names must exist and belong to the caller's team. */
export async function checkRunRequest(
  deps: { readonly db: Queryable; readonly models: Models },
  principal: Pick<Principal, 'teamId'> & { readonly creator: RunActor },
  request: RunAgentRequest,
  origin: RunSourceType,
): Promise<RequestOutcome> {
  const { db, models } = deps;
  const { teamId } = principal;
  const faults: Fault[] = [];
  const config = request.config ?? {};
  // The first of several skills is the run's skill for clients that know only one.
  const skillSpec = request.skill ?? config.skill_spec ?? config.skills?.[0];
  if (request.on_behalf_of !== undefined) {
    return { kind: 'not_available', detail: 'on_behalf_of is not available on this service; leave it out.' };
  }
  if (request.agent_identity_uid !== undefined) {
    faults.push({ path: 'agent_identity_uid', message: 'there is no such agent identity' });
  }
  if (!request.prompt?.trim() && request.conversation_id === undefined) {
    faults.push(faultOfMissingPrompt(request));
  }
  checkConfig(config, skillSpec, faults);
  const servers = await checkMcpServers(db, teamId, config.mcp_servers ?? {});
  if ('kind' in servers) return servers;
  faults.push(...servers.faults);
  const harness = checkHarness(config);
  if (!harness.ok) faults.push(harness.fault);
  const checkedModels = checkModels(
    models,
    await readModelChoices(db, teamId),
    { config, harness: harness.ok ? harness.harness : 'oz', mayWait: origin === 'SCHEDULED_AGENT' },
    faults,
  );
  const { attachments, faults: attachmentFaults } = decodeAttachments(request);
  faults.push(...attachmentFaults);
  const lineage = await readLineage(db, teamId, request, faults);
  await checkConversation(db, teamId, request, faults);
  if (config.environment_id !== undefined) {
    const environment = await findNamedEnvironment(db, principal, config.environment_id);
    if (environment.kind === 'other_team')
      return { kind: 'forbidden', detail: 'The environment belongs to another team.' };
    const message = environment.kind === 'unknown' ? 'there is no such environment' : imageProblem(environment.config);
    if (message !== null) faults.push({ path: 'config.environment_id', message });
  }
  if (faults.length > 0 || !harness.ok) return { kind: 'invalid', faults };
  if (checkedModels.kind !== 'ok') return checkedModels;

  const prompt = request.prompt ?? '';
  const name =
    config.name ??
    skillSpec
      ?.split(/[:/]/)
      .filter((part) => part !== 'SKILL.md')
      .at(-1);
  const workerHost = workerHostOf(config);
  const actor = { kind: principal.creator.kind, uid: principal.creator.uid };
  const run: NewRun = {
    id: randomUUIDv7(),
    teamId,
    title: request.title?.trim() || titleOf(prompt) || name || 'Continued conversation',
    prompt,
    config: skillSpec === config.skill_spec ? config : ({ ...config, skill_spec: skillSpec } as AmbientAgentConfig),
    ...(name === undefined ? {} : { name }),
    modelId: checkedModels.modelId,
    harness: harness.harness,
    ...(config.environment_id === undefined ? {} : { environmentId: config.environment_id }),
    ...(skillSpec === undefined ? {} : { skillSpec }),
    ...(workerHost === undefined ? {} : { workerHost }),
    source: lineage.parentRunId === undefined ? origin : 'ORCHESTRATION',
    creator: actor,
    executor: actor,
    ...(request.mode === undefined ? {} : { mode: request.mode }),
    ...(lineage.parentRunId === undefined ? {} : { parentRunId: lineage.parentRunId }),
    ancestorIds: lineage.ancestorIds,
    metadata: lineage.metadata,
    ...(request.conversation_id === undefined ? {} : { conversationId: request.conversation_id }),
    attachments: [],
  };
  return { kind: 'ok', run, files: attachments };
}
