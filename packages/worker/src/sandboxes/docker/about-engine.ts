import type { EngineFacts } from '../engine/engine.ts';

/** Tells a person which engine this is, and which of its features no test of Runyard covers. */
export function aboutEngine(facts: EngineFacts, runtime = facts.defaultRuntime): string[] {
  const { name, cgroupVersion } = facts;
  const untested = [
    'rootless engines, which are refused',
    `engines with cgroup version 2${cgroupVersion === '2' ? ', as this one is' : ''}`,
  ];
  return [
    `${name}, runtime ${runtime || 'unknown'}, cgroup version ${cgroupVersion || 'unknown'}`,
    `never tested: ${untested.join('; ')}`,
  ];
}
