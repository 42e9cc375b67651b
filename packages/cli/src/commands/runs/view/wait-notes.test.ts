import type { RunItem } from '@runyard/contract/runs/runs';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { noColours } from '../../../terminal/colours.ts';
import { showWaits } from './wait-notes.ts';

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

const waiting = { state: 'QUEUED', status_message: { message: 'no worker\u001b[2J is connected' } } as RunItem;
const begun = { state: 'INPROGRESS' } as RunItem;

/**
 * Calls `showWaits` with a fake client that answers each read of the run with the next item of `readings`. Returns the text that was
 * printed.
 */
async function notesOf(readings: readonly (RunItem | Error)[], rounds = readings.length): Promise<string> {
  let written = '';
  const out = (text: string) => {
    written += text;
  };
  const remainingReadings = [...readings];
  const getRun = async () => {
    const next = remainingReadings.shift();
    if (next === undefined || next instanceof Error) throw next ?? new Error('read too often');
    return next;
  };
  const notes = showWaits({ out, colours: noColours }, { getRun }, 'r', () => '');
  for (let round = 0; round < rounds; round += 1) await vi.advanceTimersByTimeAsync(2000);
  notes.stop();
  expect(vi.getTimerCount()).toBe(0);
  return written;
}

test('showWaits prints each reason for the wait of a run once, without control characters', async () => {
  const later = { ...waiting, status_message: { message: 'all slots are taken' } } as RunItem;
  expect(await notesOf([waiting, waiting, later, begun])).toBe('  no worker is connected\n  all slots are taken\n');
});

test('showWaits prints nothing about a run that has begun, and stops reading the run', async () => {
  expect(await notesOf([begun], 3)).toBe('');
});

test('showWaits ignores a failed read and reads again', async () => {
  expect(await notesOf([new Error('no answer'), waiting])).toBe('  no worker is connected\n');
});

test('showWaits prints nothing during the quiet time, in which a worker starts', async () => {
  let written = '';
  const out = (text: string) => {
    written += text;
  };
  const notes = showWaits({ out, colours: noColours }, { getRun: async () => waiting }, 'r', () => '', 30_000);
  await vi.advanceTimersByTimeAsync(29_000);
  expect(written).toBe('');
  await vi.advanceTimersByTimeAsync(2000);
  expect(written).toBe('  no worker is connected\n');
  notes.stop();
});
