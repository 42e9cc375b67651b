import { expect, test } from 'vitest';
import { recordWith } from '../../../platform/metrics/record.ts';
import { watchProviders } from './watch-providers.ts';

test('a fault of an identity provider is in /readyz and the metrics for as long as it lasts, and in the log once', async () => {
  const logged: unknown[] = [];
  const log = { warn: (...line: unknown[]) => logged.push(line), info: (...line: unknown[]) => logged.push(line) };
  const results: string[] = [];
  const stop = recordWith({ record: (name, labels) => void results.push(`${name} ${labels.result}`) });
  let reason: string | null = null;
  const providers = [
    { id: 'acme', check: async () => reason },
    { id: 'other', check: async () => null },
  ];
  const watch = watchProviders({ signOn: { providers }, log });
  await watch.ask();
  expect(watch.degraded()).toBeNull();
  reason = 'it has no TLS';
  await watch.ask();
  await watch.ask();
  expect(watch.degraded()).toBe('people cannot sign in with the identity provider acme; the log has the reason');
  reason = null;
  await watch.ask();
  stop();
  expect(watch.degraded()).toBeNull();
  expect(logged).toEqual([
    [{ provider: 'acme', reason: 'it has no TLS' }, 'people cannot sign in with an identity provider'],
    [{ provider: 'acme' }, 'people can sign in with an identity provider again'],
  ]);
  const checks = ['done', 'done', 'failed', 'done', 'failed', 'done', 'done', 'done'];
  expect(results).toEqual(checks.map((result) => `runyard_identity_provider_checks_total ${result}`));
});
