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

/** Throws a `SandboxError` if the specification asks for files in the sandbox, because no backend supports this yet. */
export function refuseFiles({ files }: Pick<SandboxSpecification, 'files'>): void {
  if (files.length > 0) {
    const paths = files.map((file) => file.path).join(', ');
    throw new SandboxError('prepare', 'files_not_supported', `files cannot be placed in sandboxes: ${paths}`);
  }
}
