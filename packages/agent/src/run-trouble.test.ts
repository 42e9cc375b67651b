import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { eventually, isRunning } from '../test/agent.ts';
import { agent, ended, fake, of, sh, start } from '../test/run.ts';

describe('a service that fails', () => {
  test('stores each event once and in order, even if it first answered 503', async () => {
    let faults = 6;
    await start(sh('for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.05; done', 'echo end'), {
      prepare: (fake) => {
        fake.fault = () => (faults-- > 0 ? { status: 503 } : undefined);
      },
    });
    await ended();
    expect(fake.output(of('action')[0]!.action_id)).toBe('1\n2\n3\n4\n5\n6\n7\n8\n');
    expect(fake.finished[0]?.success).toBe(true);
  });

  test('gets and stores the start of the agent before the agent acts on the prompt', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'runyard-trouble-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = path.join(folder, 'made');
    const isMade: boolean[] = [];
    await start(sh(`touch ${file}`), {
      prepare: (fake) => {
        fake.fault = ({ path }) => {
          if (!path.endsWith('/events') || isMade.length === 4) return undefined;
          isMade.push(existsSync(file));
          return { status: 503 };
        };
      },
    });
    await ended();
    expect(isMade).toEqual([false, false, false, false]);
    expect(existsSync(file)).toBe(true);
  });

  test('stores no event twice if its acknowledgements do not reach the agent', async () => {
    let requests = 0;
    await start(sh('for i in 1 2 3 4 5 6; do echo $i; sleep 0.05; done'), {
      prepare: (fake) => {
        fake.fault = ({ path }) => (path.endsWith('/events') && requests++ % 2 === 0 ? { status: 'cut' } : undefined);
      },
    });
    await ended();
    expect(requests).toBeGreaterThan(2);
    expect(fake.output(of('action')[0]!.action_id)).toBe('1\n2\n3\n4\n5\n6\n');
  });

  test('gets a notice in place of an event that the service refused, and gets all other events unchanged', async () => {
    await start(sh('echo one', 'echo poison', 'echo three'), {
      prepare: (fake) => {
        fake.fault = ({ path, body }) => {
          if (!path.endsWith('/events') && !path.endsWith('/finish-task')) return undefined;
          const { events = [] } = JSON.parse(body) as { events?: { type: string; text?: string }[] };
          return events.some((event) => event.type === 'action_output' && event.text === 'poison\n')
            ? { status: 400 }
            : undefined;
        };
      },
    });
    await ended();
    expect(of('action_output').map((event) => event.text)).toEqual(['one\n', 'three\n']);
    expect(of('notice')).toEqual([expect.objectContaining({ name: 'event_refused' })]);
    expect(of('action_result')).toHaveLength(3);
  });

  test('stops the agent and its commands at once, without a report, if the execution is superseded', async () => {
    await start(sh('echo $$; exec sleep 600'));
    await fake.until(() => of('action_output').length === 1);
    const pid = Number(of('action_output')[0]?.text);
    const eventCount = fake.events.length;
    fake.supersede();
    await ended();
    await eventually(() => !isRunning(pid));
    expect(fake.events.length).toBe(eventCount);
    expect(fake.finished).toEqual([]);
    expect(fake.shutdowns).toEqual([]);
  });

  test('that does not know the run gets a report, and the agent exits', async () => {
    await start(sh('true'), {
      prepare: (fake) => {
        fake.fault = ({ path }) => (path.endsWith('/resolve-prompt') ? { status: 404 } : undefined);
      },
    });
    await ended();
    expect(fake.finished[0]?.error).toMatchObject({
      code: 'agent_process_failed',
      message: expect.stringContaining('404'),
    });
  });

  test('gets a report if the agent cannot read its task', async () => {
    await start(sh('true'), {
      prepare: (fake) => {
        fake.task = {} as typeof fake.task;
      },
    });
    await ended(1);
    expect(fake.finished).toEqual([
      expect.objectContaining({ success: false, error: expect.objectContaining({ code: 'agent_process_failed' }) }),
    ]);
    expect(agent.stderr()).toContain('TypeError');
  });
});
