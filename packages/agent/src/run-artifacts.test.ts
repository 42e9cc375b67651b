import { describe, expect, test } from 'vitest';
import { ended, fake, of, sh, start } from '../test/run.ts';

describe('artifacts', () => {
  test('are stored by the command report-artifact, and the command prints their uid', async () => {
    await start(
      sh(
        'mkdir out && printf 123 > out/result.json && cd out && report-artifact result.json --title Result --description "The one"',
      ),
    );
    await ended();
    expect(fake.output(of('action')[0]!.action_id)).toBe('artifact-1\n');
    expect(fake.artifacts).toEqual([
      {
        artifact_uid: 'artifact-1',
        artifact_type: 'FILE',
        data: {
          filename: 'result.json',
          filepath: 'out/result.json',
          mime_type: 'application/json',
          size_bytes: 3,
          title: 'Result',
          description: 'The one',
        },
        bytes: Buffer.from('123'),
      },
    ]);
  });

  test('are reported with their whole path if they are outside of the workspace', async () => {
    await start(sh('f=$(mktemp) && report-artifact "$f" && echo "at $f" && rm "$f"'));
    await ended();
    const filepath = (fake.artifacts[0]!.data as { filepath?: string }).filepath;
    expect(filepath).toMatch(/^\//);
    expect(fake.output(of('action')[0]!.action_id)).toContain(`at ${filepath}\n`);
  });

  test('are reported with the data that belongs to their type', async () => {
    await start(
      sh(
        'echo "# Plan" > plan.md; report-artifact plan.md --type PLAN --title "My plan"',
        'report-artifact --type PULL_REQUEST --url https://x.test/pr/1 --branch fix',
        'report-artifact --type EXTERNAL_REFERENCE --url https://x.test/i/1 --reference-type issue --title Issue',
        ': > empty; report-artifact empty --type screenshot --mime-type image/png',
      ),
    );
    await ended();
    expect(fake.artifacts.map(({ artifact_type, data }) => [artifact_type, data])).toEqual([
      ['PLAN', { title: 'My plan', content: '# Plan\n' }],
      ['PULL_REQUEST', { url: 'https://x.test/pr/1', branch: 'fix' }],
      ['EXTERNAL_REFERENCE', { reference_type: 'issue', url: 'https://x.test/i/1', title: 'Issue' }],
      ['SCREENSHOT', expect.objectContaining({ filename: 'empty', mime_type: 'image/png', size_bytes: 0 })],
    ]);
    expect(fake.artifacts[3]?.bytes).toEqual(Buffer.alloc(0));
  });

  test.each([
    ['a folder', 'report-artifact .', 'is a folder'],
    ['a missing file', 'report-artifact nothing', 'there is no file'],
    ['a symbolic link', 'ln -s /etc/passwd link; report-artifact link', 'symbolic link'],
    [
      'a file about the agent itself',
      'report-artifact /proc/self/maps --type PLAN',
      'is a file of the kernel below /proc',
    ],
    [
      'such a file behind a link to a folder',
      'ln -s /proc/self here; report-artifact here/status',
      'is a file of the kernel below /proc',
    ],
    ['a named pipe', 'mkfifo pipe; report-artifact pipe', 'not a regular file'],
    ['a device', 'report-artifact /dev/zero', 'not a regular file'],
    ['an unknown type', 'report-artifact x --type POEM', 'unknown artifact type'],
    ['a pull request without its branch', 'report-artifact --type PULL_REQUEST --url https://x.test', 'needs branch'],
    ['an unknown flag', 'report-artifact --colour x', 'Unknown option'],
  ])('refuses %s with exit code 1 and the reason', async (_what, command, reason) => {
    await start(sh(command));
    await ended();
    expect(of('action_result')[0]).toMatchObject({ state: 'failed', exit_code: 1 });
    expect(fake.output(of('action')[0]!.action_id)).toContain(reason);
    expect(fake.artifacts).toEqual([]);
  });

  test('are stored only once if the answer of the service is lost', async () => {
    let cuts = 0;
    await start(sh('echo a > plan.md; report-artifact plan.md --type PLAN'), {
      prepare: (fake) => {
        fake.fault = ({ path }) => (path.endsWith('/report-artifact') && cuts++ === 0 ? { status: 'cut' } : undefined);
      },
    });
    await ended();
    expect(cuts).toBe(2);
    expect(fake.artifacts).toHaveLength(1);
  });

  test('are uploaded again after a failed upload', async () => {
    let failures = 0;
    await start(sh('head -c 300000 /dev/zero > big; report-artifact big; rm big'), {
      prepare: (fake) => {
        fake.fault = ({ method }) => (method === 'PUT' && failures++ === 0 ? { status: 500 } : undefined);
      },
    });
    await ended();
    expect(fake.artifacts[0]?.bytes?.length).toBe(300_000);
    expect(failures).toBe(2);
  });
});
