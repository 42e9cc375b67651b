/**
 * Tests runs that start other runs in real sandboxes. A parent waits for its children on a worker with one slot, exchanges messages
 * with them, and is cancelled together with them.
 */
import type { RunItem } from '@runyard/contract/runs/runs';
import pg from 'pg';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../packages/service/test/database.ts';
import { defaultScript } from './fakes/models/turns.ts';
import { describeSystemWithModels, endsWithWorker } from './support/describe-system.ts';
import { isLong } from './support/long.ts';
import { eventually, killHard } from './support/system.ts';

/** Number of trees of runs (a run and its children) that share the slot at the same time. */
const trees = isLong ? 3 : 2;

let database: TestDatabase;
let db: pg.Pool;
const onOneSlot = async () => {
  database = await createTestDatabase({ maxConnections: 1 });
  db = new pg.Pool({ connectionString: database.url, max: 4 });
  db.on('error', () => {});
  return {
    databaseUrl: database.url,
    // A waiting parent must give up its slot. On one slot, its children could otherwise never begin.
    env: {
      RUNYARD_WORKER_SLOTS: '1',
      RUNYARD_LEASE_SECONDS: '12',
      RUNYARD_RECONNECT_GRACE_SECONDS: '5',
      ...endsWithWorker,
    },
  };
};
afterAll(async () => {
  await db?.end();
  await database?.drop();
});

describeSystemWithModels('run trees', onOneSlot, (system, models) => {
  afterEach(() => models.script(defaultScript));

  /**
   * Returns a function that writes commands as `sh` blocks between these fences. A runbook inside of a command needs shorter fences
   * than the runbook around it.
   */
  const fenced =
    (fence: string) =>
    (...blocks: string[]) =>
      blocks.map((block) => `${fence}sh\n${block}\n${fence}`).join('\n\n');
  const [runbook, over, overAll] = [fenced('~~~'), fenced('~~~~~'), fenced('~~~~~~~')];
  const start = (prompt: string, flags = '') =>
    `child-run start ${flags} - <<'END-${prompt.length}'\n${prompt}\nEND-${prompt.length}`;
  const conversation = async (runId: string) =>
    JSON.stringify(await system.call('GET', `/agent/runs/${runId}/conversation`).catch(() => ''));
  const below = async (runId: string): Promise<RunItem[]> =>
    (
      await system.call<{ runs: RunItem[] }>(
        'GET',
        `/agent/runs?ancestor_run_id=${runId}&sort_by=created_at&sort_order=asc`,
      )
    ).runs;
  /** Waits until the run has exactly `count` descendants, and `accept` returns true for all of them. */
  const untilBelow = (runId: string, count: number, accept: (run: RunItem) => boolean, timeoutMs?: number) =>
    eventually(
      `${count} runs below ${runId}`,
      async () => {
        const runs = await below(runId);
        return runs.length === count && runs.every(accept) ? runs : null;
      },
      timeoutMs,
    ).catch(async (error: Error) => {
      const seen = (await below(runId)).map((run) => [run.state, run.is_sandbox_running, run.status_message?.message]);
      throw new Error(`${error.message}: ${JSON.stringify(seen)}`);
    });
  const orchestrate = (prompt: string, more: object = {}) => system.createRun(prompt, { mode: 'orchestrate', ...more });
  /** A runbook that starts a child, which sleeps, and waits for this child. */
  const sleepers = over(start(runbook('echo asleep-$((1+1)); sleep 300')), 'child-run await');

  test('a model starts two runs, waits for them on a single slot and summarises their answers', async () => {
    models.script((said) => {
      if (!said.prompt.includes('Split it')) return defaultScript(said);
      switch (said.turnOfPrompt) {
        case 0:
          return {
            toolCalls: [
              { name: 'start_run', input: { prompt: 'Please run `echo left-$((20+2))`.', title: 'Left' } },
              { name: 'start_run', input: { prompt: 'Please run `echo right-$((30+3))`.', title: 'Right' } },
            ],
          };
        case 1:
          return { toolCalls: [{ name: 'await_runs', input: {} }] };
        default: {
          const words = said.toolResults.join('\n').match(/(left|right)-\d+/g) ?? [];
          return { text: [`Together: ${[...new Set(words)].sort().join(' and ')}.`] };
        }
      }
    });
    const runId = await orchestrate('Split it.', {
      config: { model_id: 'anthropic/claude-opus-4-5' },
      metadata: { ticket: '7' },
    });
    const run = await system.untilEnded(runId);
    expect(run.state, JSON.stringify(run.status_message)).toBe('SUCCEEDED');
    expect(await conversation(runId)).toContain('Together: left-22 and right-33.');
    const children = await below(runId);
    expect(children).toMatchObject(
      ['Left', 'Right'].map((title) => ({
        title,
        state: 'SUCCEEDED',
        source: 'ORCHESTRATION',
        parent_run_id: runId,
        metadata: { ticket: '7' },
        agent_config: { model_id: 'anthropic/claude-opus-4-5' },
      })),
    );
  });

  test('a runbook starts runs with shell commands and waits for them, on three levels', { tags: 'long' }, async () => {
    const leaf = runbook('echo leaf-$((40+2))');
    const middle = over(start(leaf), 'child-run await');
    const top = overAll(start(middle, '--mode orchestrate --title Middle'), 'child-run await --timeout 120');
    const runId = await orchestrate(top, { config: { child_runs: { enabled: true, overrides: ['child_runs'] } } });
    const run = await system.untilEnded(runId);
    expect(run.state, await conversation(runId)).toBe('SUCCEEDED');
    const [first, second] = await below(runId);
    expect([first?.title, first?.parent_run_id, second?.parent_run_id]).toEqual(['Middle', runId, first?.run_id]);
    expect(await conversation(second?.run_id ?? '')).toContain('leaf-42');
    // The conversation of the top run shows how the middle run ended. Only the conversation of the leaf run shows the output of the
    // leaf run.
    expect(await conversation(runId)).toContain(`run ${first?.run_id} SUCCEEDED`);
  });

  test('several runs that wait for their children share one slot until all runs have succeeded', async () => {
    const parts = over(`${start(runbook('sleep 0.3'))}\n${start(runbook('echo done'))}`, 'child-run await');
    const runIds = await Promise.all(Array.from({ length: trees }, () => orchestrate(parts)));
    let most = 0;
    await eventually('the end of all', async () => {
      const { rows } = await db.query(
        "SELECT count(*)::int AS n FROM executions WHERE phase IN ('claimed', 'running')",
      );
      most = Math.max(most, rows[0]?.n);
      const runs = await Promise.all(runIds.map((runId) => system.run(runId)));
      return runs.every(({ state }) => state === 'SUCCEEDED');
    });
    // At most four executions are in these phases: a child and its waiting parent in one tree, and, if the child of another tree
    // begins at this moment, this child and its waiting parent.
    expect(most).toBeLessThanOrEqual(4);
    expect((await Promise.all(runIds.map(below))).map((runs) => runs.length)).toEqual(runIds.map(() => 2));
  });

  test('a run that may not start other runs is refused with the reason when it tries to start one', async () => {
    const runId = await system.createRun(runbook('child-run start "Do it."'));
    const run = await system.untilEnded(runId);
    expect(run.state).toBe('FAILED');
    expect(await conversation(runId)).toContain('may not start other runs');
    expect(await below(runId)).toEqual([]);
  });

  test('a message of a child begins the next turn of its parent, and the parent can continue the child', async () => {
    const answer = runbook('echo "heard-$((6*7))"');
    const report = `child-run message parent '${answer}'`;
    const again = `child-run message "$(cat child)" '${runbook('echo again-$((1+2))')}'; child-run await`;
    const top = overAll(`id=$(${start(over(report))}\n); echo "$id" > child`, 'child-run await', again);
    const runId = await orchestrate(top, { config: { idle_timeout_minutes: 1 } });
    await eventually('the second turn', async () => (await conversation(runId)).includes('heard-42'));
    const run = await system.untilEnded(runId);
    expect(run.state, await conversation(runId)).toBe('SUCCEEDED');
    const [child] = await below(runId);
    const said = await conversation(child?.run_id ?? '');
    expect(said).toContain('again-3');
    expect(said).toContain(`Message from run ${runId}`);
    expect(await conversation(runId)).toContain(`Message from run ${child?.run_id}`);
  });

  describe('an interrupted parent stops waiting, its children continue, and a follow-up continues the parent', () => {
    /** Waits until the only child of the run is in progress, interrupts the run, and returns the child. */
    const interrupt = async (runId: string) => {
      const [child] = await untilBelow(runId, 1, (run) => run.state === 'INPROGRESS');
      await eventually('the wait', async () => (await awaiting(runId)) !== null);
      await system.call('POST', `/agent/runs/${runId}/interrupt`);
      const parent = await system.untilEnded(runId);
      expect(parent, JSON.stringify(parent.status_message)).toMatchObject({
        state: 'SUCCEEDED',
        is_sandbox_running: true,
      });
      const childId = child?.run_id ?? '';
      expect((await system.run(childId)).state).toBe('INPROGRESS');
      await eventually('the end of the wait', async () => (await awaiting(runId)) === null);
      return childId;
    };
    const awaiting = async (runId: string) =>
      (await db.query('SELECT awaiting_until FROM executions WHERE run_id = $1', [runId])).rows[0]?.awaiting_until;

    test('if the parent is a runbook', async () => {
      const runId = await orchestrate(sleepers);
      const childId = await interrupt(runId);
      expect(await conversation(runId)).not.toContain('Ran all');
      const goOn = runbook(`child-run list; child-run cancel ${childId}; child-run await || echo after-$((1+1))`);
      await system.call('POST', `/agent/runs/${runId}/followups`, { message: goOn });
      await eventually('the next turn', async () => (await conversation(runId)).includes('after-2'));
      expect((await system.untilEnded(runId)).state).toBe('SUCCEEDED');
      const [child] = await untilBelow(runId, 1, (run) => run.is_sandbox_running === false);
      expect(child?.state).toBe('CANCELLED');
    });

    test('if the parent uses a model', { tags: 'long' }, async () => {
      models.script((said) => {
        if (!said.prompt.includes('Split it')) return defaultScript(said);
        return said.turnOfPrompt === 0
          ? { toolCalls: [{ name: 'start_run', input: { prompt: 'Please run `sleep 300`.' } }] }
          : { toolCalls: [{ name: 'await_runs', input: {} }] };
      });
      const runId = await orchestrate('Split it.', { config: { model_id: 'anthropic/claude-opus-4-5' } });
      const childId = await interrupt(runId);
      await system.call('POST', `/agent/runs/${runId}/followups`, { message: 'Please run `echo after-$((1+1))`.' });
      await eventually('the next turn', async () => (await conversation(runId)).includes('after-2'));
      expect((await system.untilEnded(runId)).state).toBe('SUCCEEDED');
      const { body } = models.requests.findLast(({ conversation: of }) => of?.prompt.includes('after-')) ?? {};
      expect(JSON.stringify(body), 'the history says what became of the wait').toContain('interrupted');
      await system.call('POST', `/agent/runs/${childId}/cancel`);
      await untilBelow(runId, 1, (run) => run.state === 'CANCELLED' && run.is_sandbox_running === false);
    });
  });

  test('a cancel of a run soon ends the sandboxes of the run and of its descendants', async () => {
    const runId = await orchestrate(sleepers);
    const [child] = await untilBelow(runId, 1, (run) => run.state === 'INPROGRESS');
    await eventually('output', async () => (await conversation(child?.run_id ?? '')).includes('asleep-2'));
    await system.call('POST', `/agent/runs/${runId}/cancel`);
    const [cancelled] = await below(runId);
    expect([(await system.run(runId)).state, cancelled?.state]).toEqual(['CANCELLED', 'CANCELLED']);
    expect(cancelled?.status_message?.message).toContain(runId);
    const gone = (run: RunItem) => run.is_sandbox_running === false;
    await Promise.all([system.until(runId, gone), untilBelow(runId, 1, gone)]);
  });

  test('a restarted service cancels the remaining descendants if it was killed during the cancel of their parent', {
    tags: 'long',
  }, async () => {
    const runId = await orchestrate(sleepers);
    const [child] = await untilBelow(runId, 1, (run) => run.state === 'INPROGRESS');
    const holder = await db.connect();
    try {
      // Lock the row of the child, so that the service cannot cancel the child before the kill.
      await holder.query('BEGIN');
      await holder.query('SELECT FROM runs WHERE id = $1 FOR UPDATE', [child?.run_id]);
      const cancel = system.call('POST', `/agent/runs/${runId}/cancel`).catch(() => 'killed');
      await system.until(runId, (run) => run.state === 'CANCELLED');
      await killHard(system.service());
      expect(await cancel).toBe('killed');
      await holder.query('ROLLBACK');
    } finally {
      holder.release();
    }
    const { rows } = await db.query('SELECT state FROM runs WHERE id = $1', [child?.run_id]);
    expect(rows).toEqual([{ state: 'INPROGRESS' }]);
    await system.startService();
    await untilBelow(runId, 1, (run) => run.state === 'CANCELLED' && run.is_sandbox_running === false);
    await system.until(runId, (run) => run.is_sandbox_running === false);
  });

  test('every run of a tree that is cancelled while its worker is dead ends, and the slot is free again', {
    tags: 'long',
  }, async () => {
    const runId = await orchestrate(sleepers);
    await untilBelow(runId, 1, (run) => run.state === 'INPROGRESS');
    await killHard(system.worker());
    await system.call('POST', `/agent/runs/${runId}/cancel`);
    await untilBelow(runId, 1, (run) => run.state === 'CANCELLED');
    system.startWorker();
    await untilBelow(runId, 1, (run) => run.is_sandbox_running === false);
    await system.until(runId, (run) => run.is_sandbox_running === false);
    // A run can only end if the slot is free again.
    const next = await system.createRun(runbook('echo free'));
    expect((await system.untilEnded(next)).state).toBe('SUCCEEDED');
  });

  test('a child run succeeds although its parent ended because of a lost worker', { tags: 'long' }, async () => {
    const runId = await orchestrate(over(start(runbook('echo later')), 'sleep 300'));
    const [child] = await untilBelow(runId, 1, () => true);
    await killHard(system.worker());
    system.startWorker();
    expect((await system.untilEnded(runId)).state).toBe('ERROR');
    expect((await system.untilEnded(child?.run_id ?? '')).state).toBe('SUCCEEDED');
  });
});
