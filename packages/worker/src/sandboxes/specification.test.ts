import { expect, test } from 'vitest';
import type { SandboxSpecification } from './sandbox.ts';
import { refuseSystem, refuseUnsupported } from './specification.ts';

const plain: SandboxSpecification = {
  executionId: 'e',
  taskId: 't',
  isLimited: false,
  limits: { memoryMb: 1, processes: 1, tmpMb: 1, diskMb: 1, openFiles: 65_536, cpus: 0 },
  files: [],
};

test('refuseUnsupported accepts a sandbox that asks only for limits', () => {
  expect(() => refuseUnsupported(plain)).not.toThrow();
});

test.each([
  ['an image', { ...plain, image: 'node:24' }, 'node:24'],
  ['files', { ...plain, files: [{ path: '/etc/a', content: new Uint8Array(), mode: 0o600 }] }, '/etc/a'],
])('refuseUnsupported refuses %s with an error that names the value', (_, specification, named) => {
  expect(() => refuseUnsupported(specification)).toThrow(named);
});

test('refuseSystem refuses an own Debian, and its error names the member of the environment and the workers that can', () => {
  expect(() => refuseSystem(plain)).not.toThrow();
  expect(() => refuseSystem({ system: 'debian' })).toThrow(/system debian.*RUNYARD_SANDBOX=bubblewrap.*`system`/);
});
