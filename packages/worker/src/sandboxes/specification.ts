import { SandboxError, type SandboxSpecification } from './sandbox.ts';

/** Throws a `SandboxError` if the specification asks for something that no backend provides yet. */
export function refuseUnsupported({ image, files }: SandboxSpecification): void {
  if (image !== undefined) {
    throw new SandboxError(
      'prepare',
      'image_not_supported',
      `the environment names the image ${image}, but the docker backend is not available yet; remove the image from the environment`,
    );
  }
  if (files.length > 0) {
    const paths = files.map((file) => file.path).join(', ');
    throw new SandboxError('prepare', 'files_not_supported', `files cannot be placed in sandboxes: ${paths}`);
  }
}
