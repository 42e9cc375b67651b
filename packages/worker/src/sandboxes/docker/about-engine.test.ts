import { expect, test } from 'vitest';
import type { EngineFacts } from '../engine/engine.ts';
import { aboutEngine, limitsOfEngine } from './about-engine.ts';

const facts: EngineFacts = {
  name: 'engine 28.0.1',
  architecture: 'x86_64',
  securityOptions: [],
  runtimes: ['runc', 'runsc'],
  defaultRuntime: 'runc',
  hasMemoryLimit: true,
  hasProcessLimit: true,
  hasSwapLimit: true,
  hasProcessorLimit: true,
  cgroupVersion: '1',
  rootFolder: '/var/lib/docker',
};

test('aboutEngine returns the version, the runtime and the cgroup version of the engine, and the features that no test covers', () => {
  expect(aboutEngine(facts)).toEqual([
    'engine 28.0.1, runtime runc, cgroup version 1',
    'never tested: rootless engines, which are refused; engines with cgroup version 2',
  ]);
  const [engine, untested] = aboutEngine({ ...facts, cgroupVersion: '2' }, 'runsc');
  expect(engine).toBe('engine 28.0.1, runtime runsc, cgroup version 2');
  expect(untested).toContain('cgroup version 2, such as this one');
});

test('aboutEngine says `unknown` for facts that the engine does not report', () => {
  const [engine] = aboutEngine({ ...facts, defaultRuntime: '', cgroupVersion: '' });
  expect(engine).toBe('engine 28.0.1, runtime unknown, cgroup version unknown');
});

test('limitsOfEngine returns each limit that the engine does not have, with a reason', () => {
  expect(limitsOfEngine(facts).filter(({ holds }) => !holds)).toEqual([]);
  const without = { hasProcessLimit: false, hasSwapLimit: false, hasProcessorLimit: false };
  expect(limitsOfEngine({ ...facts, ...without })).toMatchObject([
    { feature: 'cgroup', holds: false, reason: expect.stringMatching(/limit the number of processes on/) },
    { feature: 'swap-limit', holds: false },
    { feature: 'processor-limit', holds: false },
  ]);
});
