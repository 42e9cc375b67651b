import { existsSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { FakeHarnessSupport } from '../../../test/fakes/harness-support.ts';
import { eventually, isRunning } from '../test/agent.ts';
import { ended, fake, of, scripted, start } from '../test/run.ts';

const followUp = (position: number, message: string) =>
  fake.tell({ type: 'follow_up', id: `f${position}`, position, message });

const stay = (fake: FakeHarnessSupport) => {
  fake.next = 'wait';
};

/** Waits until the agent has noticed the end of the harness and has reaped its process. */
async function harnessGone(): Promise<number> {
  const pid = Number(/\(process (\d+)\)$/.exec(fake.text())?.[1]);
  await eventually(() => !existsSync(`/proc/${pid}`));
  return pid;
}

async function playAndDie(mode: string, task = {}): Promise<number> {
  await start({ ...scripted(mode), prompt: 'Remember 42.', ...task }, { prepare: stay });
  await fake.until(() => fake.finished.length === 1);
  return await harnessGone();
}

async function leave(): Promise<void> {
  fake.tell({ type: 'leave' });
  await ended();
}

describe('a harness that dies between turns', () => {
  test('is started again for the next follow-up and continues its session', async () => {
    const first = await playAndDie('remembers-and-dies');
    followUp(1, 'What was it?');
    await fake.until(() => fake.finished.length === 2);
    expect(await harnessGone()).not.toBe(first);
    await leave();
    expect(fake.finished.map(({ success }) => success)).toEqual([true, true]);
    expect(fake.finished[1]?.summary).toContain('I remember "Remember 42."\n"What was it?"');
    expect(of('notice')).toMatchObject([
      { step_id: of('turn_started')[1]?.step_id, name: 'harness_restarted', data: { reason: 'exited with code 3' } },
    ]);
  });

  test('gets the conversation as text after its restart if it cannot load sessions', async () => {
    await playAndDie('forgets-and-dies', { agent_config: { base_prompt: 'The base.' } });
    followUp(1, 'What was it?');
    await fake.until(() => fake.finished.length === 2);
    await harnessGone();
    followUp(2, 'And now?');
    await fake.until(() => fake.finished.length === 3);
    await leave();
    const heard = fake.finished.map(({ summary }) => JSON.parse(/I remember (".*")\n/.exec(summary)?.[1] ?? '""'));
    expect(heard[0]).toBe('The base.\n\nRemember 42.');
    expect(heard[1]).toMatch(
      /^The base\.\n\nYou continue .*<conversation>\n## user\nRemember 42\.\n\n## assistant\nI remember .*<\/conversation>.*\n\nWhat was it\?$/s,
    );
    expect(heard[2]).toMatch(/Remember 42\..*What was it\?.*<\/conversation>.*\n\nAnd now\?$/s);
    expect(of('notice').map(({ name }) => name)).toEqual(['harness_restarted', 'harness_restarted']);
  });
});

test('is replaced by a new harness for the next follow-up if the agent had to kill it because it ignored an interrupt', async () => {
  await start(scripted('ignores-cancel'), { prepare: stay });
  await fake.until(() => of('action').length === 1);
  const pid = Number((of('action')[0]?.input as { pid?: unknown } | undefined)?.pid);
  fake.tell({ type: 'interrupt', turn: 1 });
  await fake.until(() => fake.finished.length === 1);
  expect(fake.finished[0]).toMatchObject({ turn: 1, success: true, interrupted: true });
  await eventually(() => !isRunning(pid));
  followUp(1, 'Again.');
  await fake.until(() => of('action').length === 2);
  fake.cancel();
  await ended();
  expect(of('notice').map(({ name }) => name)).toEqual(['harness_killed', 'harness_restarted']);
});
