/** Test support: runs that start other runs through the API of agents. */
import type { Assignment } from '../src/runs/executions/queue/assign.ts';
import type { TestAnswer, TestService } from './service.ts';

/** Path of the routes. */
export const children = '/harness-support/child-runs';
/** The time in all events that these agents send. */
export const at = '2026-01-02T03:04:05.000Z';

/** Configuration of a run whose children may also start runs. */
export const nesting = { child_runs: { enabled: true, overrides: ['child_runs'] } };

export interface TestChildRuns {
  /** Reports that the agent of an assignment has started. Returns the assignment. */
  started(assignment: Assignment): Promise<Assignment>;
  /** Creates a run in progress whose mode allows it to start other runs. */
  orchestrator(body?: Record<string, unknown>): Promise<Assignment>;
  /** Ends the turn of the agent with this token successfully. */
  finish(token: string, summary?: string): Promise<TestAnswer>;
  /** Starts a child of the run with this token. Returns the id of the child. */
  startChild(token: string, body?: Record<string, unknown>): Promise<string>;
  /** Assigns a waiting run to a separate worker, and starts its agent. */
  begin(runId: string): Promise<Assignment>;
  /** Returns the run in the form in which people read it. */
  run(runId: string): Promise<Record<string, unknown>>;
}

/** Returns functions that act like the agents of runs of this service. */
export function testChildRuns(service: TestService): TestChildRuns {
  const started = async (assignment: Assignment): Promise<Assignment> => {
    await service.begin(assignment.runToken);
    return assignment;
  };
  const orchestrator = async (body: Record<string, unknown> = {}) =>
    await started(await service.startExecution({ mode: 'orchestrate', ...body }));
  const finish = (token: string, summary = 'done') =>
    service.request('POST', '/harness-support/finish-task', { key: token, body: { success: true, summary } });
  const startChild = async (token: string, body: Record<string, unknown> = {}) =>
    (await service.ok<{ run_id: string }>('POST', children, { key: token, body: { prompt: 'A part.', ...body } }))
      .run_id;
  const begin = async (runId: string) => await started(await service.claimRun(runId));
  const run = async (runId: string) => await service.ok<Record<string, unknown>>('GET', `/agent/runs/${runId}`);

  return { started, orchestrator, finish, startChild, begin, run };
}
