import type { EngineFacts } from '../engine/engine.ts';

/** Returns lines that describe the engine for a person. They also list the features of the engine that no test of Runyard covers. */
export function aboutEngine(facts: EngineFacts, runtime = facts.defaultRuntime): string[] {
  const { name, cgroupVersion } = facts;
  const untested = [
    'rootless engines, which are refused',
    `engines with cgroup version 2${cgroupVersion === '2' ? ', such as this one' : ''}`,
  ];
  return [
    `${name}, runtime ${runtime || 'unknown'}, cgroup version ${cgroupVersion || 'unknown'}`,
    `never tested: ${untested.join('; ')}`,
  ];
}

export interface EngineLimit {
  readonly feature: string;
  readonly holds: boolean;
  /** Names the limits that the engine does not have. */
  readonly reason: string;
}

/**
 * Returns the limits that need the kernel's cgroups, and whether the engine supports each limit. An engine that does not support a limit
 * would start containers without this limit.
 */
export function limitsOfEngine(facts: EngineFacts): EngineLimit[] {
  const { hasMemoryLimit, hasProcessLimit, hasSwapLimit, hasProcessorLimit } = facts;
  const absent = [...(hasMemoryLimit ? [] : ['memory']), ...(hasProcessLimit ? [] : ['the number of processes'])];
  return [
    {
      feature: 'cgroup',
      holds: absent.length === 0,
      reason: `the engine cannot limit ${absent.join(' or ')} on this machine: a run can take all of the machine`,
    },
    {
      feature: 'swap-limit',
      holds: hasSwapLimit,
      reason:
        'the engine cannot limit swap on this machine: a run over its memory continues in swap, if the machine has any',
    },
    {
      feature: 'processor-limit',
      holds: hasProcessorLimit,
      reason: 'the engine cannot limit processors on this machine: runs whose instance_shape limits them fail',
    },
  ];
}
