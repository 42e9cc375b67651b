import { chmodSync, chownSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { testFolder } from '../../test/agent.ts';
import { clearFolder } from './clear-folder.ts';

/** Run the test with the rights of an ordinary user, because root ignores permission bits. */
const other = 65_534;

async function withoutRoot(act: () => Promise<void>): Promise<void> {
  if (process.geteuid?.() !== 0) return await act();
  process.seteuid?.(other);
  try {
    await act();
  } finally {
    process.seteuid?.(0);
  }
}

test('clearFolder removes folders without write permission, and does not change the targets of links', async () => {
  const top = testFolder();
  const [folder, outside] = [join(top, 'workspace'), join(top, 'outside')];
  const [locked, inner] = [join(folder, 'locked'), join(folder, 'locked', 'inner')];
  for (const each of [folder, outside, locked, inner]) mkdirSync(each);
  writeFileSync(join(inner, 'file'), 'of an earlier run');
  symlinkSync(outside, join(inner, 'link'));
  if (process.geteuid?.() === 0) for (const each of [folder, outside, locked, inner]) chownSync(each, other, other);
  chmodSync(top, 0o711);
  chmodSync(outside, 0o500);
  chmodSync(inner, 0);
  chmodSync(locked, 0o500);

  await withoutRoot(() => clearFolder(folder));

  expect(readdirSync(folder)).toEqual([]);
  expect(statSync(outside).mode & 0o777).toBe(0o500);
});
