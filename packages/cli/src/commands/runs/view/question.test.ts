import { describe, expect, test } from 'vitest';
import { answerOf, decisionLines, promptOf, questionLines } from './question.ts';

test.each([
  ['y', { decision: 'approve' }],
  ['YES', { decision: 'approve' }],
  ['n', { decision: 'deny' }],
  ['yes, but not that', { decision: 'deny', message: 'yes, but not that' }],
  ['use npm ci', { decision: 'deny', message: 'use npm ci' }],
])('answerOf converts the text %j for a permission request into %j', (text, answer) => {
  expect(answerOf({ kind: 'permission', request_id: 'q' }, text)).toEqual({ request_id: 'q', ...answer });
});

test('answerOf returns any text for a question as the answer, even `y`', () => {
  expect(answerOf({ kind: 'question', request_id: 'q' }, 'y')).toEqual({ request_id: 'q', message: 'y' });
});

describe('the lines of a permission request', () => {
  const lines = (title: string, input: unknown, isCommandShown = false) =>
    questionLines(
      { kind: 'permission', title, action: { name: 'shell', category: 'command', input } },
      { isCommandShown },
    );
  const head = 'asks for permission to use shell:';

  test.each([
    ['a title that is the command in quotation marks', 'Run `rm x`', { command: 'rm x' }, [head, '  Run `rm x`']],
    ['a title that names another command', 'Run ls', { command: 'rm x' }, [head, '  Run ls', '  rm x']],
    [
      'a title that ends with the command, after another one',
      'Run echo rm x',
      { command: 'rm x' },
      [head, '  Run echo rm x', '  rm x'],
    ],
    [
      'a title that only begins with the command',
      'rm x or not',
      { command: 'rm x' },
      [head, '  rm x or not', '  rm x'],
    ],
    ['members besides the command', 'rm x', { command: 'rm x', cwd: '/etc' }, [head, '  rm x', '  {"cwd":"/etc"}']],
    [
      'an action without a command',
      'Fetch',
      { url: 'https://a.test/' },
      [head, '  Fetch', '  {"url":"https://a.test/"}'],
    ],
    [
      'a change of a file, with the lines of its diff',
      'Edit files',
      { path: 'a', diff: '@@ -1 +1 @@\n-a\n+b\u0007\n' },
      [head, '  Edit files', '  {"path":"a"}', '  @@ -1 +1 @@', '  -a', '  +b[U+0007]'],
    ],
    ['an input that is text', 'Fetch', 'https://a.test/', [head, '  Fetch', '  "https://a.test/"']],
    ['no input', 'Fetch', undefined, [head, '  Fetch']],
  ])('show the whole action for %s', (_, title, input, expected) => {
    expect(lines(title, input)).toEqual(expected);
  });

  test('do not repeat a command that the screen already shows, but show the other members of the action', () => {
    expect(lines('rm x', { command: 'rm x' }, true)).toEqual(['asks for permission to use shell']);
    expect(lines('rm x', { command: 'rm x', cwd: '/etc' }, true)).toEqual([head, '  {"cwd":"/etc"}']);
  });

  test('show a long action completely, and the command only once', () => {
    const command = 'rm x\n'.repeat(40);
    const shown = lines(`${command.slice(0, 100)}…`, { command, note: 'n'.repeat(3_000), cwd: '/etc' });
    expect(shown.filter((line) => line === '  rm x')).toHaveLength(40);
    expect(shown.slice(41)).toEqual(['  {', `    "note": "${'n'.repeat(3_000)}",`, '    "cwd": "/etc"', '  }']);
  });

  test('show long runs of spaces and escape sequences as visible text', () => {
    const command = `echo safe${' '.repeat(30_000)}\u001b[8m; rm x`;
    expect(lines('Say it', { command })).toEqual([head, '  Say it', '  echo safe[30000 spaces][U+001B][8m; rm x']);
  });

  test('contain no characters that reorder the text', () => {
    expect(lines('Run ls', { command: 'ls \u202egnp.x', note: '\u2066' }).join()).not.toMatch(/[\u202e\u2066]/);
  });
});

test('decisionLines returns the same lines for the request as questionLines', () => {
  expect(decisionLines('approve', 'echo safe\nrm -rf important\n')).toEqual([
    'approved:',
    '  echo safe',
    '  rm -rf important',
  ]);
  expect(decisionLines('deny', 'rm \u001b[1m x')).toEqual(['denied: rm [U+001B][1m x']);
});

test('answerOf and promptOf offer the rest of the run only for a request that offers it', () => {
  const asked = { kind: 'permission', request_id: 'q', rest_of_run: 'all git pushes to fix of acme/site' } as const;
  expect(answerOf(asked, 'r')).toEqual({ request_id: 'q', decision: 'approve', allow_for: 'run' });
  expect(promptOf(asked)).toContain('[r]est of the run');
  expect(questionLines({ ...asked, title: 'git push' }).join('\n')).toContain('all git pushes to fix of acme/site');
  const once = { kind: 'permission', request_id: 'q' } as const;
  expect(answerOf(once, 'r')).toEqual({ request_id: 'q', decision: 'deny', message: 'r' });
  expect(promptOf(once)).not.toContain('[r]est');
});
