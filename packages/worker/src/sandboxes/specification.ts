import { SandboxError, type SandboxSpecification } from './sandbox.ts';

/**
 * Throws a `SandboxError` if the specification asks for an image or for files. Used by backends whose sandboxes see the programs of this
 * machine, because these backends support neither.
 */
export function refuseUnsupported({ image, files }: SandboxSpecification): void {
  if (image !== undefined) {
    throw new SandboxError(
      'prepare',
      'image_not_supported',
      `the environment names the image ${image}, and this worker cannot run images: start a worker with RUNYARD_SANDBOX=docker, or remove the image from the environment`,
    );
  }
  refuseFiles({ files });
}

/** Throws a `SandboxError` if the specification asks for a Debian of its own. Used by backends that cannot make one. */
export function refuseSystem({ system }: Pick<SandboxSpecification, 'system'>): void {
  if (system === undefined) return;
  throw new SandboxError(
    'prepare',
    'system_not_supported',
    `the environment has the system ${system}, and only workers with RUNYARD_SANDBOX=bubblewrap can give a sandbox its own Debian: start such a worker, or remove \`system\` from the environment. A container image has a system of its own`,
  );
}

/** Calls `work`, which finds the image of a service. An error names the service. */
export async function ofService<T>(service: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error;
    throw new SandboxError(error.phase, error.reason, `the service ${service}: ${error.message}`, { cause: error });
  }
}

/** Throws a `SandboxError` if the specification asks for files in the sandbox, because no backend supports this yet. */
export function refuseFiles({ files }: Pick<SandboxSpecification, 'files'>): void {
  if (files.length > 0) {
    const paths = files.map((file) => file.path).join(', ');
    throw new SandboxError('prepare', 'files_not_supported', `files cannot be placed in sandboxes: ${paths}`);
  }
}
