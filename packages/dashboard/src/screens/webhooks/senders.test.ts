import { signatureSchemeNames } from '@runyard/contract/wire/choices';
import { expect, test } from 'vitest';
import { newSecretFor, senders } from './senders.ts';

test('each kind of sender has its own steps, which say where the address and the secret go', () => {
  expect(Object.keys(senders).toSorted()).toEqual([...signatureSchemeNames, 'token', 'url_token'].toSorted());
  const texts = Object.values(senders).map(({ setup }) => setup);
  expect(new Set(texts).size).toBe(texts.length);
  for (const text of texts) for (const word of ['address', 'secret']) expect(text).toContain(word);
});

test('the steps of a sender that makes the secret say to store it here, and the page makes no secret for it', () => {
  const makers = signatureSchemeNames.filter((name) => senders[name].makesSecret);
  expect(makers).toContain('stripe');
  for (const name of makers) {
    expect(senders[name].setup, name).toContain('store it here');
    expect(newSecretFor(name), name).toBeUndefined();
  }
  expect(newSecretFor('github')).toMatch(/^[0-9a-f]{64}$/);
  expect([newSecretFor('standard_webhooks'), newSecretFor('sns'), newSecretFor('token')]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});
