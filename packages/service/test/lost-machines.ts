/** Test support: runs whose machine is lost during a turn. */
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import type { AgentEventBody } from '@runyard/contract/runs/agent-events';
import type { TimelineEvent } from '@runyard/contract/runs/timeline';
import { afterEach } from 'vitest';
import type { Assignment } from '../src/runs/executions/queue/assign.ts';
import { endSandbox, type SandboxEnd } from '../src/runs/executions/reconcile/sandbox-end.ts';
import { openTestService } from './service.ts';

/**
 * Opens a service for the tests of a file. Returns functions that begin a turn of a run, and functions that report the machine of the
 * turn as lost.
 */
export async function openLostMachines() {
  const service = await openTestService({ env: { RUNYARD_WORKSPACE_MB: '1', RUNYARD_CHECKPOINT_SECONDS: '60' } });
  const { db, executionDeps } = service.deps;
  afterEach(async () => {
    // End the executions that are still queued, so that the next test begins without any.
    await db.query("UPDATE executions SET phase = 'ended' WHERE phase = 'queued'", []);
  });

  const resumes = { config: { on_worker_loss: 'resume' } };
  const lostKind: SandboxEnd = { kind: 'lost', message: 'The machine burnt.' };
  const at = '2026-01-02T03:04:05.000Z';

  const stateOf = async (runId: string) =>
    await service.ok<{ state: string; status_message?: { message: string } }>('GET', `/agent/runs/${runId}`);
  const timelineOf = async (runId: string) =>
    (await service.ok<{ events: TimelineEvent[] }>('GET', `/agent/runs/${runId}/timeline`)).events;
  const taskOf = async ({ runToken }: Assignment) =>
    await service.ok<AgentTask>('POST', '/harness-support/resolve-prompt', { key: runToken, body: {} });

  /** Begins the first turn of an assignment. Returns the assignment, and functions that send requests as its agent. */
  async function begin(assignment: Assignment) {
    let seq = 0;
    const key = assignment.runToken;
    const say = async (...events: AgentEventBody[]) => {
      const numbered = events.map((event) => ({ seq: ++seq, occurred_at: at, ...event }));
      return (await service.report(key, numbered)).status;
    };
    const text = (words: string): AgentEventBody => ({
      type: 'text',
      step_id: 's',
      message_id: words,
      role: 'assistant',
      text: words,
    });
    const put = async (number: number, bytes: Buffer, more = '') =>
      (
        await service.request('PUT', `/harness-support/workspace?turn=1&checkpoint=${number}${more}`, {
          key,
          raw: new Uint8Array(bytes),
          headers: { 'content-type': 'application/octet-stream' },
        })
      ).status;
    const mark = (number: number, more: object = {}) =>
      say({ type: 'checkpoint', number, state: 'begun', turn: 1, ...more });
    await taskOf(assignment);
    await say(
      { type: 'agent_started', harness: 'oz', model_id: 'runbook' },
      { type: 'turn_started', step_id: 's', prompt: 'Do it.' },
    );
    return { ...assignment, say: async (words: string) => await say(text(words)), report: say, put, mark };
  }

  const beginRun = async (body: object = resumes) => await begin(await service.startExecution({ ...body }));
  const lose = (assignment: Assignment, end = lostKind) => endSandbox(executionDeps, assignment.executionId, end);
  const blobsNow = async () => {
    const keys: string[] = [];
    for await (const { key } of service.deps.blobs.list()) if (key.startsWith('workspaces/')) keys.push(key);
    return keys.length;
  };
  /** Assigns the next execution of the run at once, without the pause that normally precedes a retry. */
  async function next(runId: string): Promise<Assignment> {
    await db.query("UPDATE executions SET available_at = now() WHERE run_id = $1 AND phase = 'queued'", [runId]);
    return await service.claimRun(runId);
  }
  /** Changes the time of the last checkpoint, so that the next checkpoint is allowed at once. */
  const letTimePass = (assignment: Assignment) =>
    db.query("UPDATE executions SET workspace_at = workspace_at - interval '1 hour' WHERE id = $1", [
      assignment.executionId,
    ]);

  return {
    service,
    resumes,
    lostKind,
    stateOf,
    timelineOf,
    taskOf,
    begin,
    beginRun,
    lose,
    blobsNow,
    next,
    letTimePass,
  };
}
