import { expect, test } from 'vitest';
import { headOf } from './ask-repositories.ts';

const commit = '0123456789abcdef0123456789abcdef01234567';
const advertised = (line: string) => `001e# service=git-upload-pack\n0000${line}\n003f${commit} refs/heads/main\n0000`;

test('the answer of git gives the commit and the name of the default branch', () => {
  const line = `0155${commit} HEAD\0multi_ack shallow symref=HEAD:refs/heads/feature/x object-format=sha1 agent=git/2`;
  expect(headOf(advertised(line))).toEqual({ commit, branch: 'feature/x' });
});

test.each([
  ['an empty repository', `00aa${'0'.repeat(40)} capabilities^{}\0multi_ack`],
  ['a HEAD that is no branch', `00aa${commit} HEAD\0multi_ack shallow`],
  ['a tag as HEAD', `00aa${commit} HEAD\0symref=HEAD:refs/tags/v1`],
  ['a branch that could be an option', `00aa${commit} HEAD\0symref=HEAD:refs/heads/--upload-pack=x`],
  ['a branch that leaves its folder', `00aa${commit} HEAD\0symref=HEAD:refs/heads/../../config`],
  ['commits of another hash', `00aa${commit}${'0'.repeat(24)} HEAD\0symref=HEAD:refs/heads/main`],
  ['a line that is cut off', `00aa${commit} HEAD`],
])('%s has no readable default branch', (_, line) => {
  expect(headOf(advertised(line))).toBeNull();
});

test('text that is not an answer of git has no default branch', () => {
  expect(headOf('<html>')).toBeNull();
});
