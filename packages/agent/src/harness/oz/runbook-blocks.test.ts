import { describe, expect, test } from 'vitest';
import { blocksAsMarkdown, runbookBlocks } from './runbook-blocks.ts';

const scripts = (prompt: string) => runbookBlocks(prompt).map((block) => `${block.shell}: ${block.script}`);

describe('runbookBlocks', () => {
  test('returns sh, shell and bash blocks in order and skips blocks of other languages', () => {
    expect(
      scripts('a\n```sh\none\n```\n```python\nno\n```\n```bash\ntwo\nmore\n```\n``` shell\nthree\n```\n```\nno\n```'),
    ).toEqual(['sh: one', 'bash: two\nmore', 'sh: three']);
  });

  test('accepts tildes, longer fences, indentation, CRLF and languages in upper case', () => {
    expect(scripts('~~~sh\n```\necho\n```\n~~~')).toEqual(['sh: ```\necho\n```']);
    expect(scripts('````sh\n```\n````')).toEqual(['sh: ```']);
    expect(scripts('  ```sh\n  one\n    two\n  ```')).toEqual(['sh: one\n  two']);
    expect(scripts('```SH\r\none\r\n```\r\n')).toEqual(['sh: one']);
  });

  test('ends an open block at the end of the text and skips empty blocks', () => {
    expect(scripts('```sh\none')).toEqual(['sh: one']);
    expect(scripts('```sh\n\n```')).toEqual([]);
  });

  test('treats a fence inside a longer fence as text of the block', () => {
    expect(scripts('````markdown\n```sh\nrm -rf /\n```\n````')).toEqual([]);
  });

  test('reads continue-on-error from the info string or from a comment before the first block', () => {
    expect(
      runbookBlocks('```sh continue-on-error\na\n```\n```sh\nb\n```').map((block) => block.continueOnError),
    ).toEqual([true, false]);
    expect(
      runbookBlocks('<!-- continue-on-error -->\n```sh\na\n```\n```sh\nb\n```').map((block) => block.continueOnError),
    ).toEqual([true, true]);
    expect(
      runbookBlocks('```sh\na\n```\n<!-- continue-on-error -->\n```sh\nb\n```').map((block) => block.continueOnError),
    ).toEqual([false, false]);
  });
});

test('blocksAsMarkdown returns text that runbookBlocks reads as the same blocks', () => {
  const blocks = runbookBlocks(
    '```sh\necho one\n```\n````bash continue-on-error\ncat <<X\n```sh\ninner\n```\nX\n````\n~~~sh\n  three\n\n~~~',
  );
  expect(blocks).toHaveLength(3);
  expect(runbookBlocks(blocksAsMarkdown(blocks))).toEqual(blocks);
});
