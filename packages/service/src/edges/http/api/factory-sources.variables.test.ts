/** Tests that factories which follow the same branch have variables with different values. */
import { expect, test } from 'vitest';
import { baseFiles, factoryFile } from '../../../../test/definitions.ts';
import { faultsOf, testSources } from '../../../../test/factory-sources.ts';

const { definitions, makeDue, push, round, set, source, syncNow } = await testSources();

const named = { ...baseFiles, 'factory.yaml': factoryFile.replace('Billing', `\${{ variables.name }}`) };
const declared = { ...named, 'variables.yaml': 'variables:\n  name: {}\n' };
const nameNow = async () => (await definitions.factory()).name;

test('a source keeps the values that it was set with, for each later commit and over other applies', async () => {
  await push(declared);
  expect(faultsOf((await set({ dry_run: true })).sync)?.[0]).toMatch(/the variable name has no default and no value/);
  expect((await set({ variables: { name: 'Staging' } })).sync).toMatchObject({ outcome: 'applied' });
  expect(await nameNow()).toBe('Staging');
  await push({ ...declared, 'agents/reviewer/agent.md': '---\nagentType: REVIEW\n---\n\nReview well.\n' });
  await makeDue();
  await round();
  expect(await source()).toMatchObject({ last_sync: { outcome: 'applied' }, variables: { name: 'Staging' } });
  expect(await nameNow()).toBe('Staging');
  expect((await set({ variables: { name: 'Production' } })).sync).toMatchObject({ outcome: 'applied' });
  expect(await nameNow()).toBe('Production');
});

test('a source without values uses the values of an earlier apply', async () => {
  await definitions.apply(declared, { variables: { name: 'Applied' } });
  await push({ ...declared, 'agents/reviewer/agent.md': undefined });
  expect((await set()).sync).toMatchObject({ outcome: 'applied' });
  expect(await nameNow()).toBe('Applied');
});

test('a value whose variable is not declared is refused when the source is set, and ignored after a later commit', async () => {
  await push(declared);
  const { sync } = await set({ variables: { name: 'a', nam: 'b' } });
  expect(sync.outcome).toBe('faulty');
  expect(faultsOf(sync)?.[0]).toContain('does not declare the variable nam, which has a value; did you mean name?');
  await set({ variables: { name: 'a' } });
  await push(baseFiles);
  expect(await syncNow()).toMatchObject({ outcome: 'applied' });
  expect(await nameNow()).toBe('Billing');
});

test('a source whose repository cannot be read keeps its values for the first commit that can be read', async () => {
  const { sync } = await set({ branch: 'later', variables: { name: 'Kept' } });
  expect(sync.outcome).toBe('unreadable');
  await push(declared, 'later');
  expect(await syncNow()).toMatchObject({ outcome: 'applied' });
  expect(await nameNow()).toBe('Kept');
});
