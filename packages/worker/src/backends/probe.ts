import type { Settings } from '@runyard/contract/settings';
import { findBubblewrap } from '../sandboxes/bubblewrap/ground.ts';
import { type ProbeResult, probeBubblewrap } from '../sandboxes/bubblewrap/level.ts';
import { openTemporaryGround } from '../sandboxes/bubblewrap/temporary-ground.ts';
import { noneLevel } from '../sandboxes/none/backend.ts';
import type { SandboxLimits } from '../sandboxes/sandbox.ts';

export type SandboxSettings = Pick<
  Settings,
  | 'RUNYARD_SANDBOX'
  | 'RUNYARD_SANDBOX_MEMORY_MB'
  | 'RUNYARD_SANDBOX_PROCESSES'
  | 'RUNYARD_SANDBOX_TMP_MB'
  | 'RUNYARD_SANDBOX_DISK_MB'
>;

export function sandboxLimits(settings: SandboxSettings): SandboxLimits {
  return {
    memoryMb: settings.RUNYARD_SANDBOX_MEMORY_MB,
    processes: settings.RUNYARD_SANDBOX_PROCESSES,
    tmpMb: settings.RUNYARD_SANDBOX_TMP_MB,
    diskMb: settings.RUNYARD_SANDBOX_DISK_MB,
  };
}

const optIn = 'or let agents run unprotected with RUNYARD_SANDBOX=none, where the machine is a sandbox itself';

/** What makes a backend unusable before anything is started; `undefined`: nothing does. */
function unavailable(reason: string, backend: 'bubblewrap' | 'docker'): ProbeResult {
  return { ok: false, reasons: [reason], level: { backend, features: [], missing: [{ feature: 'sandbox', reason }] } };
}

export const dockerUnavailable = unavailable(
  'the docker backend is not available yet: set RUNYARD_SANDBOX=bubblewrap or auto',
  'docker',
);
export const bubblewrapMissing = unavailable(
  `bubblewrap is not installed: install it (Debian, Ubuntu, Fedora, Arch: package \`bubblewrap\`), ${optIn}`,
  'bubblewrap',
);
export const notLinux = unavailable(
  `bubblewrap needs Linux, and this is ${process.platform}: run the worker on Linux, ${optIn}`,
  'bubblewrap',
);

/**
 * Tells what the sandboxes of a worker with these settings are worth on this machine, by starting one. For `runyard doctor`:
 * needs no data folder and leaves nothing behind. `ok` false: a worker would refuse to start, for `reasons`.
 */
export async function probeSandbox(settings: SandboxSettings): Promise<ProbeResult> {
  if (settings.RUNYARD_SANDBOX === 'none') return { ok: true, reasons: [], level: noneLevel };
  if (settings.RUNYARD_SANDBOX === 'docker') return dockerUnavailable;
  if (process.platform !== 'linux') return notLinux;
  const program = await findBubblewrap();
  if (program === undefined) return bubblewrapMissing;
  const { ground, cgroups, close } = await openTemporaryGround({
    program,
    limits: sandboxLimits(settings),
    log: { warn: () => {} },
  });
  try {
    return await probeBubblewrap(ground, cgroups);
  } finally {
    await close();
  }
}
