/** Adds reports of the worker and the agent about a sandbox to the timeline. */
import { randomUUIDv7 } from 'node:crypto';
import type { DeniedConnection, DeniedConnections } from '@runyard/contract/egress/denied';
import { deniedReasons } from '@runyard/contract/egress/denied-reasons';
import { maxDeniedShown } from '@runyard/contract/limits';
import { otherValue } from '@runyard/contract/metrics/metric';
import type { SandboxIsolation } from '@runyard/contract/runs/timeline';
import { shorten } from '@runyard/contract/wire/shorten';
import type { SandboxLevel, WorkerMessage } from '@runyard/contract/workers/worker-protocol';
import { count, observe } from '../../../platform/metrics/record.ts';
import { afterCommit, type Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, integer, json, nullable } from '../../../platform/store/database/statement.ts';
import { redactorOf, type ServiceSecrets } from '../../../team/redaction/agent-text.ts';
import { readGrantedSecrets } from '../../../team/stored-secrets/run-secrets.ts';
import { slotPhases } from '../phases.ts';
import { appendTimelineEvent } from './timeline.ts';

/** Limits of the texts about isolation in the timeline. The operator of the worker writes these texts, so they could be long. */
const maxFeatures = 30;
const maxFeatureText = 100;
const maxReasonText = 300;

/**
 * Reads the isolation level that the worker reported for all its sandboxes when it connected. Workers that are not Runyard's own program
 * report no level.
 */
const recordOfWorker = defineStatement({
  name: 'record_sandbox_of_worker',
  text: `
    UPDATE executions e SET sandbox = jsonb_build_object('backend', c.sandbox->>'backend') FROM worker_connections c
    WHERE e.id = $1 AND e.sandbox IS NULL AND c.id = e.connection_id AND c.sandbox->>'backend' IS NOT NULL
    RETURNING c.sandbox AS level`,
  row: { level: json<SandboxLevel>() },
});

const record = defineStatement({
  name: 'record_sandbox',
  text: `
    UPDATE executions e SET sandbox = $2::jsonb WHERE id = $1 AND phase IN ${slotPhases} AND sandbox IS NULL
    RETURNING (SELECT c.sandbox FROM worker_connections c WHERE c.id = e.connection_id) AS level`,
  row: { level: nullable(json<SandboxLevel>()) },
});

/** Returns the isolation for a timeline event: the present features, and the missing features with their reasons. */
const isolationOf = ({ features, missing }: Partial<SandboxLevel>): SandboxIsolation => ({
  ...(features ? { features: features.slice(0, maxFeatures).map((each) => shorten(each, maxFeatureText)) } : {}),
  ...(missing
    ? {
        missing: missing.slice(0, maxFeatures).map(({ feature, reason }) => ({
          feature: shorten(feature, maxFeatureText),
          reason: shorten(reason, maxReasonText),
        })),
      }
    : {}),
});

const completeEvent = defineStatement({
  name: 'complete_sandbox_event',
  text: `
    UPDATE run_events v SET payload = v.payload || $3::jsonb FROM executions e
    WHERE e.id = $2 AND v.run_id = $1 AND v.execution_number = e.number AND v.event_type = 'worker_container_ready'
      AND NOT v.payload ? 'spawn_ms'
    RETURNING v.seq`,
  row: { seq: integer },
});

interface Target {
  readonly runId: string;
  readonly executionId: string;
}

/**
 * Adds a sandbox to the timeline, with the data that its worker reports, and measures its start. A repeated report changes nothing. The
 * caller has locked the run's row.
 */
export async function addReadySandbox(
  tx: Queryable,
  target: Target,
  sandbox: { readonly backend: string; readonly spawn_ms: number },
): Promise<void> {
  const { backend, spawn_ms } = sandbox;
  const measure = () => afterCommit(tx, () => observe('runyard_sandbox_start_seconds', { backend }, spawn_ms / 1_000));
  const [recorded] = await tx.query(record, [target.executionId, JSON.stringify({ backend })]);
  if (recorded) {
    measure();
    const payload = { ...sandbox, ...isolationOf(recorded.level ?? {}) };
    return await appendTimelineEvent(tx, { ...target, type: 'worker_container_ready', payload });
  }
  // If the agent has reported its start before the worker, only add the worker's data. A worker may be later, because its backend may read
  // the states of its sandboxes only from time to time.
  const completed = await tx.query(completeEvent, [target.runId, target.executionId, JSON.stringify(sandbox)]);
  if (completed.length > 0) measure();
}

/**
 * Adds the sandbox of an agent that has begun to work to the timeline, unless the worker has already reported this sandbox. The caller
 * has locked the run's row.
 */
export async function addSandboxOfAgent(tx: Queryable, target: Target): Promise<void> {
  const [recorded] = await tx.query(recordOfWorker, [target.executionId]);
  if (!recorded) return;
  const payload = { backend: recorded.level.backend, ...isolationOf(recorded.level) };
  await appendTimelineEvent(tx, { ...target, type: 'worker_container_ready', payload });
}

type ImageStep = Extract<WorkerMessage, { type: 'image_step' }>['data'];

/**
 * Maximum number of events about the image pull of one execution. A pull has a start, an end, and progress reports every few seconds, less
 * often during a long pull.
 */
const mostEvents = 40;

const countSteps = defineStatement({
  name: 'count_image_steps',
  text: `
    SELECT count(*)::int AS count FROM run_events v JOIN executions e ON e.id = $2 AND e.number = v.execution_number
    WHERE v.run_id = $1 AND v.payload->>'kind' = 'image'`,
  row: { count: integer },
});

const types = {
  started: 'setup_step_started',
  progress: 'setup_step_progress',
  finished: 'setup_step_finished',
} as const;

/**
 * Adds a step of the image pull to the timeline, at most `mostEvents` for each execution. The caller has locked the run's row.
 */
export async function appendImageStep(
  tx: Queryable,
  { runId, executionId }: { readonly runId: string; readonly executionId: string },
  { step, image, downloaded_bytes, total_bytes, bytes, duration_ms, error }: ImageStep,
): Promise<void> {
  const [found] = await tx.query(countSteps, [runId, executionId]);
  if ((found?.count ?? 0) >= mostEvents) return;
  const payload = {
    step_id: executionId,
    kind: 'image',
    name: image,
    downloaded_bytes,
    total_bytes,
    bytes,
    duration_ms,
    error,
  };
  await appendTimelineEvent(tx, { runId, executionId, type: types[step], payload });
}

type ServiceOutput = Extract<WorkerMessage, { type: 'service_output' }>['data'];

/** Maximum number of events about the services of one execution, from the agent and the worker together. */
const mostServiceEvents = 400;

const countServiceEvents = defineStatement({
  name: 'count_service_events',
  text: `
    SELECT count(*)::int AS count FROM run_events v JOIN executions e ON e.id = $2 AND e.number = v.execution_number
    WHERE v.run_id = $1 AND v.payload->>'kind' = 'service'`,
  row: { count: integer },
});

/**
 * Adds a step with the last lines of a service to the timeline. The caller has locked the run's row. Programs of the service choose the
 * text, so it is untrusted.
 */
export async function appendServiceOutput(
  service: ServiceSecrets,
  tx: Queryable,
  { runId, executionId }: { readonly runId: string; readonly executionId: string },
  { name, output_tail, error }: ServiceOutput,
): Promise<void> {
  const [found] = await tx.query(countServiceEvents, [runId, executionId]);
  if ((found?.count ?? 0) >= mostServiceEvents) return;
  const redactor = redactorOf(service, { grantedSecrets: await readGrantedSecrets(tx, runId) });
  const step = {
    step_id: randomUUIDv7(),
    kind: 'service',
    name: redactor.whole(`${name}${error === undefined ? ': output' : ' ended'}`),
  };
  const end = { ...step, duration_ms: 0, output_tail: redactor.whole(output_tail), error };
  await appendTimelineEvent(tx, { runId, executionId, type: 'setup_step_started', payload: step });
  await appendTimelineEvent(tx, { runId, executionId, type: 'setup_step_finished', payload: end });
}

/**
 * Returns a row if the report with this number is already stored. The caller then skips the report: a worker sends a report again if it
 * was not acknowledged.
 */
const findReport = defineStatement({
  name: 'read_denied_connections',
  text: `
    SELECT FROM run_events v JOIN executions e ON e.id = $2 AND e.number = v.execution_number
    WHERE v.run_id = $1 AND v.event_type = 'connection_denied' AND v.payload->'number' = to_jsonb($3::int)`,
  row: {},
});

/**
 * Counts denied connections. The final report repeats the connections of the earlier reports, each of which counted one try. Tries that
 * the final report omits count as `other`.
 */
function countDenied({ number, connections, total }: DeniedConnections): void {
  const isFinal = number > maxDeniedShown;
  for (const { reason, count: tries } of connections) {
    const uncounted = isFinal ? tries - 1 : tries;
    if (uncounted > 0) count('runyard_egress_denied_total', { reason }, uncounted);
  }
  const omitted = total - connections.reduce((sum, { count: tries }) => sum + tries, 0);
  if (isFinal && omitted > 0) count('runyard_egress_denied_total', { reason: otherValue }, omitted);
}

/**
 * Adds denied connections of a sandbox to the timeline. Each report has a number, and a report whose number is already stored is skipped.
 * The numbers have a maximum, so the number of events is limited too. The caller has locked the run's row. Programs of the run choose the
 * names of the hosts, so these names are untrusted text.
 */
export async function appendDeniedConnections(
  service: ServiceSecrets,
  tx: Queryable,
  { runId, executionId }: { readonly runId: string; readonly executionId: string },
  denied: DeniedConnections,
): Promise<void> {
  const { number, connections, total } = denied;
  if ((await tx.query(findReport, [runId, executionId, number])).length > 0) return;
  afterCommit(tx, () => countDenied(denied));
  const redactor = redactorOf(service, { grantedSecrets: await readGrantedSecrets(tx, runId) });
  const toItem = ({ host, port, reason, count }: DeniedConnection) => ({
    host: redactor.whole(host),
    port,
    reason,
    message: deniedReasons[reason],
    count,
  });
  const [first] = connections;
  const payload =
    number <= maxDeniedShown && first !== undefined
      ? { number, ...toItem(first) }
      : { number, total, connections: connections.map(toItem) };
  await appendTimelineEvent(tx, { runId, executionId, type: 'connection_denied', payload });
}
