import { describe, expect, test } from 'vitest';
import { ended, fake, of, sh, start } from '../test/run.ts';

describe('the setup', () => {
  test('writes attachments, then runs setup commands and reports the duration and the exit code of each command', async () => {
    await start(
      {
        ...sh('cat made'),
        attachments: [
          { file_name: 'data.txt', mime_type: 'text/plain', size_bytes: 5, path: '/api/v1/harness-support/files/1' },
          { file_name: 'data.txt', mime_type: 'text/plain', size_bytes: 3, path: '/api/v1/harness-support/files/2' },
        ],
        environment: {
          uid: 'e',
          config: { setup_commands: ['cat attachments/data.txt attachments/data-2.txt > made', 'echo ready'] },
        },
      },
      {
        prepare: (fake) => {
          fake.files.set('/api/v1/harness-support/files/1', Buffer.from('first'));
          fake.files.set('/api/v1/harness-support/files/2', Buffer.from('2nd'));
        },
      },
    );
    await ended();
    expect(of('setup_step_finished')).toEqual([
      expect.objectContaining({ kind: 'attachments', name: '2 files', duration_ms: expect.any(Number) }),
      expect.objectContaining({ kind: 'setup_command', exit_code: 0 }),
      expect.objectContaining({ kind: 'setup_command', name: 'echo ready', exit_code: 0, output_tail: 'ready\n' }),
    ]);
    expect(fake.output(of('action')[0]!.action_id)).toBe('first2nd');
  });

  test('fails the run if a step fails, and the error has the step, its exit code and the end of its output', async () => {
    await start({
      ...sh('true'),
      environment: {
        uid: 'e',
        config: {
          setup_commands: [
            'true',
            'i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; echo broken; exit 5',
            'true',
          ],
        },
      },
    });
    await ended();
    const steps = of('setup_step_finished');
    expect(steps).toHaveLength(2);
    expect(steps[1]).toMatchObject({ exit_code: 5, output_tail: expect.stringMatching(/broken\n$/) });
    expect(steps[1]?.output_tail?.length).toBeLessThanOrEqual(8 * 1024);
    expect(fake.finished[0]).toMatchObject({
      success: false,
      error: {
        code: 'environment_setup_failed',
        message: expect.stringMatching(/Setup command 2 of 3.*exited with code 5.*broken.*Fix the command/s),
      },
    });
    expect(of('agent_started')).toEqual([]);
    expect(fake.shutdowns, 'the end of the turn says it').toEqual([]);
  });

  test('fails with the name of an attachment that cannot be downloaded', async () => {
    await start({
      ...sh('true'),
      attachments: [
        { file_name: 'gone', mime_type: 'text/plain', size_bytes: 5, path: '/api/v1/harness-support/files/1' },
      ],
    });
    await ended();
    expect(fake.finished[0]?.error).toMatchObject({
      code: 'environment_setup_failed',
      message: expect.stringContaining('"gone"'),
    });
  });
});
