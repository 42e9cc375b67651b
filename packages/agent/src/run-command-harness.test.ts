import { describe, expect, test } from 'vitest';
import { ended, fake, of, start } from '../test/run.ts';

const command = (script: string) => ({ harness: { type: 'command', command: ['sh', '-c', script] } });

describe('the harness command', () => {
  test('gets the prompt on standard input, and its output becomes the transcript', async () => {
    const script = 'echo "got: $(cat)"; echo "$WORD"; echo "no transcript" >&2';
    const { harness } = command(script);
    await start({ prompt: 'Do it.', harness: { ...harness, env: { WORD: 'from-env' } } });
    await ended();
    expect(of('transcript').map(({ line }) => line)).toEqual(['got: Do it.', 'from-env']);
    expect(fake.finished).toEqual([{ turn: 1, success: true, summary: 'got: Do it.\nfrom-env' }]);
  });

  test('fails the turn with the exit code of its program and the end of the standard error', async () => {
    await start(command('echo "the reason" >&2; exit 7'));
    await ended();
    expect(fake.finished[0]).toMatchObject({
      success: false,
      error: { message: 'The program sh exited with code 7. Its last output on standard error:\nthe reason' },
    });
  });

  test('fails the turn if its program does not exist', async () => {
    await start({ harness: { type: 'command', command: ['/nowhere/program'] } });
    await ended();
    expect(fake.finished[0]?.error?.message).toContain('could not be started');
  });

  test('leaves no process after a cancel', async () => {
    await start(command('sleep 4713.5 & echo begun; wait'));
    await fake.until(() => of('transcript').some(({ line }) => line === 'begun'));
    fake.cancel();
    await ended();
    const { findProcesses } = await import('../../worker/src/state/processes.ts');
    expect(await findProcesses('cmdline', '4713.5')).toEqual([]);
  });
});
