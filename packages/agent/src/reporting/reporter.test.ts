import type { AgentEvent, AgentEventBody } from '@runyard/contract/runs/agent-events';
import { describe, expect, test } from 'vitest';
import { ServiceRefusal, Superseded } from '../service/errors.ts';
import { type ReporterOptions, startReporter } from './reporter.ts';

type Answer = (events: AgentEvent[]) => number | Error | Promise<number>;

/** Creates a reporter. `answer` returns the number to acknowledge for each batch; by default all events are acknowledged. */
function report(answer: Answer = (events) => events.at(-1)?.seq ?? 0, options: Partial<ReporterOptions> = {}) {
  const batches: AgentEvent[][] = [];
  const stop = new AbortController();
  let superseded = 0;
  const reporter = startReporter({
    client: {
      sendEvents: async (body) => {
        const { events } = JSON.parse(body) as { events: AgentEvent[] };
        batches.push(events);
        const result = await answer(events);
        if (result instanceof Error) throw result;
        return { acknowledged: result };
      },
    },
    signal: stop.signal,
    onSuperseded: () => superseded++,
    flushDelayMs: 1,
    ...options,
  });
  return { reporter, batches, stop, superseded: () => superseded };
}

const text = (text: string, message_id = 'm'): AgentEventBody => ({
  type: 'text',
  step_id: 's',
  message_id,
  role: 'assistant',
  text,
});
const output = (text: string, action_id = 'a'): AgentEventBody => ({ type: 'action_output', action_id, text });
const line = (line: string): AgentEventBody => ({ type: 'transcript', line });

describe('the reporter', () => {
  test('numbers events from 1 without gaps', async () => {
    const { reporter, batches } = report();
    for (let index = 0; index < 2500; index++) reporter.emit(line(`${index}`));
    await reporter.flush();
    expect(batches.map((batch) => batch.length)).toEqual([1000, 1000, 500]);
    expect(batches.flat().map((event) => event.seq)).toEqual(Array.from({ length: 2500 }, (_, index) => index + 1));
  });

  test('marks a pause of a text or an output by one piece without text, but not after white space or a further piece', async () => {
    const { reporter, batches } = report(undefined, { pauseMs: 20 });
    const texts = () => batches.flat().map((event) => ('text' in event ? event.text : event.type));
    reporter.emit(text('Now I am test'));
    reporter.emit(text('ing'));
    reporter.emit(output('done\n'));
    await expect.poll(texts).toEqual(['Now I am testing', 'done\n', '']);
    expect(batches.flat().at(-1)).toMatchObject({ type: 'text', message_id: 'm' });
    reporter.emit(text('.'));
    reporter.emit({ type: 'turn_finished', step_id: 's' });
    reporter.emit(output('of the next turn'));
    await expect.poll(texts).toEqual(['Now I am testing', 'done\n', '', '.', 'turn_finished', 'of the next turn', '']);
  });

  test('gives the unsent events once to the report of a turn, and sends those events again that the service did not store with this report', async () => {
    const { reporter, batches } = report();
    for (const each of ['1', '2', '3']) reporter.emit(line(each));
    const { events, settle } = await reporter.takeRest();
    expect(events.map(({ seq }) => seq)).toEqual([1, 2, 3]);
    reporter.emit(line('4'));
    const flushed = reporter.flush();
    expect(batches).toEqual([]);
    settle(2);
    await flushed;
    expect(batches.map((batch) => batch.map(({ seq }) => seq))).toEqual([[3], [4]]);
    expect((await reporter.takeRest()).events).toEqual([]);
  });

  test('gives the report of a turn at most one batch of events, after waiting for the batch that is being sent', async () => {
    const answered = Promise.withResolvers<number>();
    const { reporter, batches } = report(() => answered.promise);
    reporter.emit(line('1'));
    await expect.poll(() => batches.length).toBe(1);
    reporter.emit(line('2'));
    const rest = reporter.takeRest();
    answered.resolve(1);
    const { events, settle } = await rest;
    expect([events.map(({ seq }) => seq), batches.length]).toEqual([[2], 1]);
    settle(2);
    reporter.emit(line('x'.repeat(300_000)));
    expect((await reporter.takeRest()).events).toEqual([]);
  });

  test('sends at most about 256 KB in one request, and sends a larger event alone', async () => {
    const { reporter, batches } = report();
    for (const size of [100_000, 100_000, 100_000, 400_000, 10]) reporter.emit(line('x'.repeat(size)));
    await reporter.flush();
    expect(batches.map((batch) => batch.length)).toEqual([2, 1, 1, 1]);
  });

  test('joins unsent text of one message and unsent output of one action, even if transcript lines are between them', async () => {
    const { reporter, batches } = report();
    for (const event of [text('a'), line('1'), text('b'), line('2'), text('c')]) reporter.emit(event);
    reporter.emit(output('x'));
    reporter.emit(output('y', 'other'));
    reporter.emit(output('z'));
    await reporter.flush();
    expect(batches.flat().flatMap((event) => ('text' in event ? [event.text] : []))).toEqual(['abc', 'xz', 'y']);
  });

  test('does not join two events if another event is between them', async () => {
    const { reporter, batches } = report();
    reporter.emit(text('a'));
    reporter.emit({ type: 'notice', step_id: 's', name: 'n', data: {} });
    reporter.emit(text('b'));
    await reporter.flush();
    expect(batches.flat().map((event) => event.type)).toEqual(['text', 'notice', 'text']);
  });

  test('sends one request at a time and collects events until the answer arrives', async () => {
    let answer = () => {};
    let first = true;
    const { reporter, batches } = report((events) => {
      if (!first) return events.at(-1)?.seq ?? 0;
      first = false;
      return new Promise((resolve) => {
        answer = () => resolve(events.at(-1)?.seq ?? 0);
      });
    });
    reporter.emit({ type: 'turn_started', step_id: 's', prompt: 'p' });
    while (batches.length === 0) await new Promise(setImmediate);
    reporter.emit(text('a'));
    reporter.emit(text('b'));
    const flushed = reporter.flush();
    await new Promise(setImmediate);
    expect(batches).toHaveLength(1);
    answer();
    await flushed;
    expect(batches).toHaveLength(2);
    expect(batches[1]).toEqual([expect.objectContaining({ seq: 2, text: 'ab' })]);
  });

  test('sends events that were not acknowledged again, with the same numbers', async () => {
    let calls = 0;
    const { reporter, batches } = report((events) => (++calls === 1 ? 1 : (events.at(-1)?.seq ?? 0)));
    for (const each of ['1', '2', '3']) reporter.emit(line(each));
    await reporter.flush();
    expect(batches.map((batch) => batch.map((event) => event.seq))).toEqual([
      [1, 2, 3],
      [2, 3],
    ]);
  });

  test('replaces a refused event and sends the other events of the batch unchanged', async () => {
    const { reporter, batches } = report((events) =>
      events.some((event) => event.type === 'transcript' && event.line === 'bad')
        ? new ServiceRefusal(400, '/events', '{}')
        : (events.at(-1)?.seq ?? 0),
    );
    for (const each of ['1', '2', 'bad', '4', '5']) reporter.emit(line(each));
    await reporter.flush();
    const accepted = batches
      .filter((batch) => !batch.some((event) => event.type === 'transcript' && event.line === 'bad'))
      .flat();
    expect(new Set(accepted.map((event) => event.seq))).toEqual(new Set([1, 2, 3, 4, 5]));
    expect(accepted.find((event) => event.seq === 3)).toMatchObject({ type: 'notice', name: 'event_refused' });
  });

  test('stops if the service refuses an event, its replacement and the last, simplest replacement', async () => {
    const { reporter } = report(() => new ServiceRefusal(404, '/events', ''));
    reporter.emit(line('1'));
    await expect(reporter.flush()).rejects.toBeInstanceOf(ServiceRefusal);
  });

  test('replaces NUL and lone surrogates', async () => {
    const { reporter, batches } = report();
    reporter.emit({
      type: 'action',
      step_id: 's',
      action_id: 'a',
      category: 'command',
      name: 'x',
      input: { 'k\0': ['\0', '\ud800', 'fine\\u0000'] },
    });
    await reporter.flush();
    expect(batches.flat()[0]).toMatchObject({ input: { 'k\uFFFD': ['\uFFFD', '\uFFFD', 'fine\\u0000'] } });
  });

  test('lets producers wait above the high-water mark until half of the waiting bytes are sent', async () => {
    let answer = () => {};
    const { reporter } = report(
      (events) =>
        new Promise((resolve) => {
          answer = () => resolve(events.at(-1)?.seq ?? 0);
        }),
      { highWaterBytes: 10_000, batchBytes: 4_000 },
    );
    while (!reporter.saturated) reporter.emit(line('x'.repeat(1000)));
    let released = false;
    void reporter.ready().then(() => {
      released = true;
    });
    await new Promise(setImmediate);
    expect(released).toBe(false);
    while (!released) {
      answer();
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    expect(reporter.saturated).toBe(false);
  });

  test('stops and releases all waiting callers when the execution is superseded', async () => {
    const { reporter, superseded, batches } = report(() => new Superseded('over'), { highWaterBytes: 10 });
    reporter.emit(line('1'));
    reporter.emit(line('2'));
    await Promise.all([reporter.ready(), expect(reporter.flush()).rejects.toBeInstanceOf(Superseded)]);
    reporter.emit(line('3'));
    await expect(reporter.flush()).rejects.toBeInstanceOf(Superseded);
    expect(superseded()).toBe(1);
    expect(batches).toHaveLength(1);
  });
});
