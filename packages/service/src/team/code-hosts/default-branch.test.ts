import { expect, it } from 'vitest';
import { defaultBranchOf } from './default-branch.ts';

const id = 'a'.repeat(40);
const line = (text: string) => `${(text.length + 4).toString(16).padStart(4, '0')}${text}`;
const service = `${line('# service=git-upload-pack\n')}0000`;

it.each([
  [
    'main',
    `${service}${line(`${id} HEAD\0multi_ack symref=HEAD:refs/heads/main agent=git\n`)}${line(`${id} refs/heads/`)}`,
  ],
  ['a/b', `${service}${line(`${id} HEAD\0symref=HEAD:refs/heads/a/b`)}`],
  // No commit yet.
  [null, `${service}${line(`${'0'.repeat(40)} capabilities^{}\0agent=git`)}0000`],
  [null, `${service}${line(`${id} refs/heads/other\0agent=git`)}`],
  [null, `${service}0000`],
  // In these answers, HEAD is not a branch, or the host does not say which branch it is.
  [undefined, `${service}${line(`${id} HEAD\0agent=git`)}`],
  [undefined, 'no answer of git'],
])('the default branch in the answer of a code host is %s', (branch, text) => {
  expect(defaultBranchOf(Buffer.from(text))).toBe(branch);
});
