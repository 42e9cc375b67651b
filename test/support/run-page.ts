/** A run whose agent is at work, and its page in a real browser. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import type { Assignment } from '../../packages/service/src/runs/executions/queue/assign.ts';
import { startTestService, type TestService } from '../../packages/service/test/service.ts';
import { type Browser, useBrowser } from './browser.ts';

/** The action about which `ask` asks. */
const input = { command: 'rm -rf build' };
export const shell = { action_id: 'a', category: 'command', name: 'shell', input };

export interface RunPage {
  service(): TestService;
  browser(): Browser;
  page(): Page;
  /** Sends events as the agent of the run, behind those that it has sent. */
  report(execution: Assignment, ...events: Record<string, unknown>[]): Promise<void>;
  /** Opens the page of a run with the key of an administrator. */
  open(runId: string): Promise<void>;
  /** Creates a run whose agent has begun its first turn. `body`: further members of the create. */
  atWork(prompt?: string, body?: Record<string, unknown>): Promise<Assignment>;
  /** Lets the agent ask for permission to run `shell`. */
  ask(execution: Assignment): Promise<void>;
  /** Returns the messages for the agent. */
  inbox(execution: Assignment): Promise<Record<string, unknown>[]>;
  /** Returns the list that gets the Idempotency-Key of each POST from now on whose URL contains `part`. */
  posts(part: string): (string | undefined)[];
}

/** Starts a service and a browser for the tests of a `describe`. */
export function useRunPage(): RunPage {
  const browser = useBrowser();
  const page = () => browser().page;
  let started: TestService;
  const service = () => started;
  beforeAll(async () => {
    started = await startTestService();
  });
  afterAll(() => started.close());

  const sent = new Map<string, number>();
  const report = async ({ runToken }: Assignment, ...events: Record<string, unknown>[]) => {
    const first = (sent.get(runToken) ?? 0) + 1;
    sent.set(runToken, first - 1 + events.length);
    const body = {
      events: events.map((event, index) => ({ seq: first + index, occurred_at: new Date().toISOString(), ...event })),
    };
    const answer = await service().request('POST', '/harness-support/events', { key: runToken, body });
    expect(answer.status, answer.text).toBe(200);
  };
  const open = async (runId: string) => {
    await page().goto(`${service().baseUrl}/runs/${runId}`);
    await page().getByLabel('API key').fill(service().key);
    await page().getByRole('button', { name: 'Open', exact: true }).click();
    await page().locator('#view').waitFor();
  };
  const atWork = async (prompt = 'Tidy up', body: Record<string, unknown> = {}) => {
    const execution = await service().startExecution({ prompt, ...body });
    await report(
      execution,
      { type: 'agent_started', harness: 'oz', model_id: 'runbook' },
      { type: 'turn_started', step_id: 's', prompt },
    );
    return execution;
  };
  const ask = async (execution: Assignment) => {
    const action = { id: 'a', name: 'shell', category: 'command', input };
    await report(
      execution,
      { type: 'action', step_id: 's', ...shell },
      {
        type: 'blocked',
        step_id: 's',
        request: { request_id: 'q', kind: 'permission', title: 'Run rm -rf build', action },
      },
    );
  };
  const inbox = async ({ runToken }: Assignment) =>
    (
      await service().request<{ items: Record<string, unknown>[] }>('GET', '/harness-support/inbox?wait_ms=5000', {
        key: runToken,
      })
    ).body.items;
  const posts = (part: string) => {
    const seen: (string | undefined)[] = [];
    page().on('request', (request) => {
      if (request.method() === 'POST' && request.url().includes(part)) seen.push(request.headers()['idempotency-key']);
    });
    return seen;
  };

  return { service, browser, page, report, open, atWork, ask, inbox, posts };
}
