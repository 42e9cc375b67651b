/** Test support: runs that start others, as their agents would. */
import type { Assignment } from '../src/executions/queue/assign.ts';
import type { TestAnswer, TestService } from './service.ts';

/** Path of the routes. */
export const children = '/harness-support/child-runs';
/** When the agents' events happened. */
export const at = '2026-01-02T03:04:05.000Z';

/** Configuration of a run whose children may start runs too. */
export const nesting = { child_runs: { enabled: true, overrides: ['child_runs'] } };

export interface TestChildRuns {
  /** The agent of an assignment begins. */
  started(assignment: Assignment): Promise<Assignment>;
  /** A run at work, in the mode that lets it start others. */
  orchestrator(body?: Record<string, unknown>): Promise<Assignment>;
  /** The agent whose token it is ends its turn well. */
  finish(token: string, summary?: string): Promise<TestAnswer>;
  /** The run whose token it is starts another; gives its id. */
  startChild(token: string, body?: Record<string, unknown>): Promise<string>;
  /** Hands a waiting run to a worker of its own, whose agent begins. */
  begin(runId: string): Promise<Assignment>;
  /** The run as people read it. */
  run(runId: string): Promise<Record<string, unknown>>;
}

/** Agents of a service. */
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
