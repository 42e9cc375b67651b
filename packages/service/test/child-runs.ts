/** Test support: runs that start other runs through the API of agents. */
import type { Assignment } from '../src/runs/executions/queue/assign.ts';
import type { TestAnswer, TestService } from './service.ts';

/** Path of the routes. */
export const children = '/harness-support/child-runs';
/** Time of the agents' events. */
export const at = '2026-01-02T03:04:05.000Z';

/** Configuration of a run whose children may also start runs. */
export const nesting = { child_runs: { enabled: true, overrides: ['child_runs'] } };

export interface TestChildRuns {
  /** Starts the agent of an assignment. */
  started(assignment: Assignment): Promise<Assignment>;
  /** Creates a run in progress in the mode that allows it to start others. */
  orchestrator(body?: Record<string, unknown>): Promise<Assignment>;
  /** Ends the turn of the agent with this token successfully. */
  finish(token: string, summary?: string): Promise<TestAnswer>;
  /** Starts a child of the run with this token; returns its id. */
  startChild(token: string, body?: Record<string, unknown>): Promise<string>;
  /** Assigns a waiting run to a separate worker, and starts its agent. */
  begin(runId: string): Promise<Assignment>;
  /** Returns the run as people read it. */
  run(runId: string): Promise<Record<string, unknown>>;
}

/** Returns agents of a service. */
export function testChildRuns(service: TestService): TestChildRuns {
  const started = async (assignment: Assignment): Promise<Assignment> => {
    const events = [{ seq: 1, occurred_at: at, type: 'agent_started', harness: 'oz', model_id: 'runbook' }];
    await service.request('POST', '/harness-support/events', { key: assignment.runToken, body: { events } });
    return assignment;
  };
  const orchestrator = async (body: Record<string, unknown> = {}) =>
    await started(await service.startExecution({ mode: 'orchestrate', ...body }));
  const finish = (token: string, summary = 'done') =>
    service.request('POST', '/harness-support/finish-task', { key: token, body: { success: true, summary } });
  const startChild = async (token: string, body: Record<string, unknown> = {}) =>
    (
      await service.request<{ run_id: string }>('POST', children, {
        key: token,
        body: { prompt: 'A part.', ...body },
      })
    ).body.run_id;
  const begin = async (runId: string) => await started(await service.claimRun(runId));
  const run = async (runId: string) =>
    (await service.request<Record<string, unknown>>('GET', `/agent/runs/${runId}`)).body;

  return { started, orchestrator, finish, startChild, begin, run };
}
