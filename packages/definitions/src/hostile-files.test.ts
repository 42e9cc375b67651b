import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { maxDefinitionYamlBytes } from '@runyard/contract/limits';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { factoryYaml, faultsOf, foreman, readFilesOf, withFiles } from '../test/definition-files.ts';

const yaml = (text: string | Uint8Array) => faultsOf(withFiles({ 'webhooks/w.yaml': text }));
const agent = (text: string) => faultsOf(withFiles({ 'agents/a/agent.md': text }));

describe('readDefinition refuses', () => {
  test.each<[string, string | Uint8Array, string]>([
    [
      'aliases that expand to a million values',
      ['a: &a [x, x, x, x]', 'b: &b [*a, *a, *a, *a]', 'c: [*b, *b]'].join('\n'),
      'anchors (&name) are not accepted',
    ],
    ['tags', 'secretName: !!js/function "x"\n', 'Unresolved tag'],
    ['tags of YAML itself', 'secretName: !!str S\n', 'tags (!name) are not accepted'],
    [
      'the same key twice',
      'secretName: S\nsecretName: T\n',
      'webhooks/w.yaml:2:1: the key secretName is there twice; the first is in line 1',
    ],
    ['merge keys', 'secretName: S\n<<: {enabled: false}\n', '<< is not a known key'],
    ['the prototype as key', 'secretName: S\n__proto__: {enabled: false}\n', 'is not accepted as a key'],
    ['keys that are lists', '? [a]\n: b\n', 'all keys must be strings'],
    ['two documents', 'secretName: S\n---\nsecretName: T\n', 'multiple documents'],
    ['tabs as indentation', 'platform:\n\tos: linux\n', 'webhooks/w.yaml:2:1: Tabs are not allowed as indentation'],
    ['UTF-16', Buffer.from('\ufeffsecretName: S\n', 'utf16le'), 'is not UTF-8 text'],
    [
      'UTF-16 without a mark',
      Buffer.from('secretName: S\n', 'utf16le'),
      'webhooks/w.yaml:1:2: contains the NUL character',
    ],
    ['half of a surrogate pair', 'secretName: "\ud800"\n', 'half of a surrogate pair'],
    ['the NUL character as an escape', 'secretName: "a\\0b"\n', 'webhooks/w.yaml:1:13: contains the NUL character'],
    ['half of a surrogate pair as an escape', 'secretName: "a\\ud800"\n', 'webhooks/w.yaml:1:13: contains half of a'],
    ['half of a surrogate pair in a key', '"a\\ud800": 1\n', 'webhooks/w.yaml:1:1: the key contains half of a'],
    ['numbers without end', 'secretName: S\nenabled: .inf\n', 'webhooks/w.yaml:2:10: is not a finite number'],
    [
      'a length that cannot be compared',
      'secretName: {length: {toString: x}}\n',
      'webhooks/w.yaml:1:13: secretName has a member length',
    ],
    ['a large file', 'a'.repeat(1024 * 1024 + 1), 'is too large'],
    ['a large YAML file', `#${'a'.repeat(maxDefinitionYamlBytes)}`, 'bytes'],
    ['lists in lists without end', '['.repeat(16_000), 'maps and lists nest at most 32 levels'],
    ['maps in maps', '{a: '.repeat(40) + '}'.repeat(40), 'maps and lists nest at most 32 levels'],
  ])('%s', (_name, text, fault) => {
    expect(yaml(text)[0]).toContain(fault);
  });

  test('a definition whose files together have too many values', () => {
    const dense = `a: [${'1,'.repeat(15_000)}]`;
    const faults = faultsOf(withFiles({ 'webhooks/v.yaml': dense, 'webhooks/w.yaml': dense }));
    expect(faults).toContainEqual(
      expect.stringContaining('webhooks/w.yaml:1:1: the YAML of all files has at most 20000 values together'),
    );
  });

  test.each([
    ['front matter in JavaScript', '---js\n{agentType: "MAIN"}\n---\nx\n', 'must begin with a line of --- alone'],
    ['no front matter', '# Agent\n', 'must begin with front matter'],
    ['front matter without an end', '---\nagentType: MAIN\n', 'must close the front matter'],
    ['front matter behind a blank line', '\n---\n---\n', 'must begin with front matter'],
  ])('%s', (_name, text, fault) => {
    expect(agent(text)[0]).toContain(fault);
  });

  test.each([
    '../factory.yaml',
    '/etc/passwd',
    'C:/x',
    'agents/../../x',
    'agents//a/agent.md',
    './factory.yaml',
    'agents\\a\\agent.md',
    'agents/a\u0000/agent.md',
    'agents/\u001b[31m/agent.md',
    `agents/${'a'.repeat(500)}/agent.md`,
    'agents/a b/agent.md',
    'agents/-a/agent.md',
    'agents/ä/agent.md',
    'webhooks/.yaml',
    'skills/s/\u009b31m',
  ])('the path %j', (path) => {
    const faults = faultsOf(withFiles({ [path]: '---\n---\n' }));
    expect(faults).toHaveLength(1);
    expect(faults[0]).not.toMatch(/\p{Cc}/u);
  });

  test.each([
    '.git/config',
    'skills/s/.GIT/config',
    'skills/s/.g\u200cit. /config',
    'skills/s/git~1/hooks/post-checkout',
  ])('the path %j, because git would use its file as configuration in an export', (path) => {
    expect(faultsOf(withFiles({ 'skills/s/SKILL.md': '', [path]: '' }))).toEqual([
      expect.stringContaining('1:1: the path has a part .git'),
    ]);
  });

  test.each([
    ['a path of a million parts', `[{ path: 'skills/s' + '/'.repeat(16_000_000), content: '' }]`, 'more than 400'],
    [
      'thousands of values behind long keys',
      `Array.from({ length: 4 }, (_, n) => ({
        path: \`webhooks/w\${n}.yaml\`, content: \`{\${'k'.repeat(16_000)}: [\${'1,'.repeat(8_000)}]}\` }))`,
      'secretName is missing',
    ],
  ])('%s in little memory', async (_name, files, fault) => {
    const program = `
      import { readDefinition } from ${JSON.stringify(import.meta.resolve('./read-definition.ts'))};
      console.log(readDefinition(${files}).faults[0].message);`;
    const args = ['--max-old-space-size=128', '--input-type=module', '--eval', program];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    expect(stdout).toContain(fault);
  });

  test('paths that differ only in case', () => {
    expect(faultsOf(withFiles({ 'agents/Foreman/agent.md': '---\n---\n' }))[0]).toContain('differs from');
  });

  test('a definition with too many files, webhooks or bytes', () => {
    const many = (count: number, path: (at: number) => string, text: string) =>
      withFiles(Object.fromEntries(Array.from({ length: count }, (_, at) => [path(at), text])));
    expect(faultsOf(many(21, (at) => `webhooks/w${at}.yaml`, 'secretName: S\n'))).toEqual([
      expect.stringContaining('a factory has at most 20 webhooks'),
    ]);
    expect(faultsOf(many(1_100, (at) => `skills/a/f${at}`, ''))).toEqual([
      expect.stringContaining('a definition has at most 1000 files'),
    ]);
    const padded = `---\n#${'a'.repeat(maxDefinitionYamlBytes - 100)}\n---\n`;
    expect(faultsOf(many(20, (at) => `agents/a${at}/agent.md`, padded))).toEqual([
      expect.stringContaining('the YAML of all files has at most'),
    ]);
    expect(faultsOf(many(9, (at) => `skills/s/f${at}`, 'x'.repeat(1024 * 1024)))).toEqual([
      expect.stringContaining('all files have at most'),
    ]);
    const ofThreeBytes = '語'.repeat(340_000);
    expect(faultsOf(many(9, (at) => `skills/s/f${at}`, ofThreeBytes))).toEqual([
      expect.stringContaining('all files have at most'),
    ]);
    expect(faultsOf(many(9, (at) => `scorers/f${at}`, ofThreeBytes))).toEqual([
      expect.stringContaining('all files have at most'),
    ]);
  });
});

describe('readDefinition ends soon and without an exception for', () => {
  test.each([
    ['brackets', '['],
    ['maps', '{a: '],
    ['lists', '- '],
    ['keys', '? '],
    ['quotes', '"'],
    ['anchors', '&a '],
    ['commas in a list', '[,'],
    ['documents', '---\n'],
    ['directives', '%a\n'],
    ['wrong escapes', '"\\q'],
  ])('%s without end', (_name, part) => {
    const text = part.repeat(Math.floor(maxDefinitionYamlBytes / part.length));
    const files = Object.fromEntries(Array.from({ length: 2 }, (_, at) => [`webhooks/w${at}.yaml`, text]));
    const faults = faultsOf(withFiles(files));
    expect(faults.length).toBeGreaterThan(0);
    expect(faults.length).toBeLessThanOrEqual(100);
    for (const fault of faults) expect(fault.length).toBeLessThan(700);
  });

  test('any text in any file', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 60 }),
      fc
        .array(
          fc.constantFrom(
            'a',
            ': ',
            '- ',
            '\n',
            '  ',
            '---\n',
            '{',
            '}',
            '[',
            ']',
            '"',
            "'",
            '|',
            '>',
            '&',
            '*',
            '!',
            '#',
            '1',
            'triggers',
            'model',
            'name',
            '\r',
            '\t',
            '\ufeff',
            '<<',
            '?',
          ),
          { maxLength: 40 },
        )
        .map((parts) => parts.join('')),
    );
    const path = fc.constantFrom(
      'factory.yaml',
      'agents/foreman/agent.md',
      'automations/n/automation.md',
      'webhooks/w.yaml',
      'runners/r.yaml',
    );
    fc.assert(
      fc.property(path, text, fc.constantFrom('', '---\n', factoryYaml, foreman), (name, end, begin) => {
        const read = readFilesOf(withFiles({ [name]: begin + end }));
        if (read.ok) return;
        expect(read.faults.length).toBeGreaterThan(0);
        for (const { line, column } of read.faults) expect(Math.min(line, column)).toBeGreaterThanOrEqual(1);
      }),
      { numRuns: 200 },
    );
  });
});
