import type { RunItem } from '@runyard/contract/runs/runs';
import { expect, test } from 'vitest';
import { noColours } from '../../../terminal/colours.ts';
import { renderSummary } from './summary.ts';

const run: RunItem = {
  run_id: 'r',
  root_run_id: 'r',
  task_id: 'r',
  title: 't',
  state: 'SUCCEEDED',
  prompt: 'p',
  created_at: '2026-11-21T10:00:00Z',
  updated_at: '2026-11-21T10:00:00Z',
  started_at: null,
  finished_at: null,
  session_link: 'http://127.0.0.1:4180/runs/r',
  run_time: 'PT1M3.52S',
};

test('the summary of a run that succeeded shows the run time, links to files, the usage and the page of the run', () => {
  const item = {
    artifact_type: 'FILE',
    created_at: run.created_at,
    data: {
      artifact_uid: 'u',
      filename: 'hello.txt',
      filepath: 'hello.txt',
      mime_type: 'text/plain',
      size_bytes: 2048,
    },
  } as const;
  const used: RunItem = { ...run, request_usage: { total_tokens: 12_345, inference_cost_usd: 0.0042 } };
  expect(renderSummary(used, [{ item, downloadUrl: 'http://127.0.0.1:4180/b' }], noColours)).toBe(
    [
      '',
      '✓ SUCCEEDED in 1 min 3 s',
      '  artifact  hello.txt (2.0 KB)',
      '            http://127.0.0.1:4180/b',
      '  usage     12,345 tokens, $0.0042',
      '  page      http://127.0.0.1:4180/runs/r',
      '',
    ].join('\n'),
  );
});

test('the summary of a run that failed shows the error code and the message without control characters', () => {
  const failed: RunItem = {
    ...run,
    state: 'FAILED',
    status_message: { message: 'setup: npm ci\n\u001b[31mno lockfile', error_code: 'environment_setup_failed' },
  };
  expect(renderSummary(failed, [], noColours)).toContain(
    '✗ FAILED in 1 min 3 s\n  environment_setup_failed: setup: npm ci\n  no lockfile\n',
  );
});

test('the summary of an interrupted run shows its status message', () => {
  const interrupted: RunItem = { ...run, status_message: { message: 'The turn was interrupted.' } };
  expect(renderSummary(interrupted, [], noColours)).toContain('SUCCEEDED in 1 min 3 s\n  The turn was interrupted.\n');
});

test('the summary of a BLOCKED run shows the question and how to answer it', () => {
  const blocked: RunItem = {
    ...run,
    state: 'BLOCKED',
    status_message: { message: 'The agent asks for permission to use shell: rm x' },
    blocked_on: { request_id: 'q', kind: 'permission', title: 'rm x', asked_at: run.created_at },
  };
  expect(renderSummary(blocked, [], noColours)).toBe(
    `\n? BLOCKED: the agent waits for a person
  The agent asks for permission to use shell: rm x
  bin/runyard approve r --follow
  bin/runyard deny r ['WHY'] --follow
  page      http://127.0.0.1:4180/runs/r\n`,
  );
  const asks = { ...blocked, blocked_on: { ...blocked.blocked_on, kind: 'question' } } as RunItem;
  expect(renderSummary(asks, [], noColours)).toContain("bin/runyard send r 'ANSWER'");
  const setup: RunItem = {
    ...blocked,
    state: 'FAILED',
    status_message: { message: 'npm ci failed', error_code: 'environment_setup_failed' },
  };
  expect(renderSummary(setup, [], noColours)).toContain(
    '\n  environment_setup_failed: npm ci failed\n  asks for permission to use something: rm x\n  bin/runyard approve r --follow\n',
  );
});
