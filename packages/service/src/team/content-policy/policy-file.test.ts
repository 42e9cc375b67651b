import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { newFolder } from '../../../../../test/support/close-at-end.ts';
import { readPolicyFile } from './policy-file.ts';

const folder = newFolder();

async function problemsOf(text: string): Promise<string> {
  const file = path.join(folder, 'policy.yaml');
  await writeFile(file, text);
  const read = await readPolicyFile(file);
  return read.ok ? 'none' : read.problems.join('\n').replaceAll(file, 'FILE');
}

describe('the file of the content policy', () => {
  test.each([
    ['rules:\n  - name: a\n    pattern: x\n', 'none'],
    ['{"rules": [{"name": "a", "pattern": "x"}]}', 'none'],
    ['classifier:\n  url: https://example.com/\n', 'none'],
    ['rules:\n  - name: a\n    pattern: "(x"\n', 'FILE, line 3: rules.0.pattern: is not a pattern of RE2: '],
    ['rules:\n  - name: a\n    pattern: "(?=x)"\n', 'FILE, line 3: rules.0.pattern: is not a pattern of RE2: '],
    ['rules:\n  - name: a\n    pattern: "(a)\\\\1"\n', 'FILE, line 3: rules.0.pattern: is not a pattern of RE2: '],
    ['rules:\n  - name: a\n    pattern: "(?:[a-z]{9}){900}"\n', 'FILE, line 3: rules.0.pattern: '],
    ['rules:\n  - {name: a, pattern: x}\n  - {name: a, pattern: y}\n', 'FILE, line 3: rules.1.name: another rule'],
    ['rules:\n  - name: a\n    patern: x\n', 'FILE, line 2: rules.0.pattern: '],
    ['rules:\n  - name: a\n   pattern: x\n', 'FILE, line 3: '],
    ['classifier:\n  url: file:///etc/passwd\n', 'FILE, line 2: classifier.url: must be a URL'],
    [
      'classifier:\n  url: https://example.com/\n  timeout_seconds: 3600\n',
      'FILE, line 3: classifier.timeout_seconds: ',
    ],
    ['a: &a [x]\nrules: [*a, *a]\n', 'aliases'],
    ['{}', 'has neither rules nor a classifier'],
  ])('with the text %j causes the problem %j', async (text, expected) => {
    const problems = await problemsOf(text);
    expect(problems).toContain(expected);
    if (expected !== 'none') expect(problems).toContain('RUNYARD_CONTENT_POLICY_FILE: ');
  });

  test('is named in the error if it does not exist', async () => {
    const read = await readPolicyFile(path.join(folder, 'missing.yaml'));
    expect(read).toMatchObject({ ok: false, problems: [expect.stringContaining('cannot be read (ENOENT)')] });
  });
});
