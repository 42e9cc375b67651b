import { describe, expect, test } from 'vitest';
import { parseRunArguments } from './arguments.ts';

const parse = (line: string, env: Record<string, string> = {}) => parseRunArguments(line.split(' '), env);

describe('parseRunArguments', () => {
  test('reads the command line of the worker protocol', () => {
    const line =
      '--share team:edit --task-id T --sandboxed --server-root-url https://x.test/ --model M --skill S --mcp {} --no-computer-use --harness oz --environment E --idle-on-complete 10m';
    expect(parse(line)).toEqual({
      ok: true,
      arguments: { taskId: 'T', serverRoot: 'https://x.test', unknown: [], stopWithParent: false },
    });
  });

  test('accepts --idle-on-complete without a time', () => {
    expect(parse('--task-id T --idle-on-complete --server-root-url http://x')).toMatchObject({
      ok: true,
      arguments: { taskId: 'T' },
    });
  });

  test('skips unknown flags with their values', () => {
    expect(parse('--new-thing 7 --task-id=T --other=1 --server-root-url http://x --flag')).toEqual({
      ok: true,
      arguments: {
        taskId: 'T',
        serverRoot: 'http://x',
        unknown: ['--new-thing', '--other', '--flag'],
        stopWithParent: false,
      },
    });
  });

  test('reads --stop-with-parent at any place', () => {
    expect(parse('--task-id T --server-root-url http://x --idle-on-complete --stop-with-parent')).toMatchObject({
      arguments: { unknown: [], stopWithParent: true },
    });
  });

  test('returns the container image that the run needs if the worker cannot start containers', () => {
    const line = '--docker-image box:1 --task-id T --server-root-url http://x';
    expect(parse(line)).not.toHaveProperty('arguments.missingImage');
    expect(parse(`${line} --without-images --stop-with-parent`)).toMatchObject({
      arguments: { missingImage: 'box:1', unknown: [], stopWithParent: true },
    });
    expect(parse('--task-id T --server-root-url http://x --without-images')).not.toHaveProperty(
      'arguments.missingImage',
    );
  });

  test('takes values that the command line lacks from the environment variables', () => {
    expect(parse('--sandboxed', { TASK_ID: 'T', WARP_SERVER_ROOT_URL: 'http://x' })).toMatchObject({ ok: true });
  });

  test.each([
    ['--server-root-url http://x', '--task-id'],
    ['--task-id T', '--server-root-url'],
    ['--task-id T --server-root-url ftp://x', 'http://'],
  ])('refuses %s', (line, reason) => {
    expect(parse(line)).toEqual({ ok: false, message: expect.stringContaining(reason) });
  });
});
