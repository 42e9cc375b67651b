/** The software bill of materials of a release: the packages of the lockfile that a user installs, in the format CycloneDX 1.5. */
import { createHash } from 'node:crypto';

/** The members of the output of `npm sbom` that this module uses or changes. https://cyclonedx.org/docs/1.5/json/ */
export interface Sbom {
  serialNumber: string;
  metadata: { timestamp: string; component: { name: string; type: string; 'bom-ref': string } };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn?: readonly string[] }[];
}

interface Component {
  readonly 'bom-ref': string;
  readonly purl: string;
  readonly properties?: readonly { readonly name: string; readonly value: string }[];
}

/**
 * Returns whether a package is only for development, by a property in the output of `npm sbom`. The option `--omit dev` of npm would
 * be wrong here: it also leaves out a package that a workspace needs if the root lists this package for development.
 */
const isForDevelopment = ({ properties = [] }: Component): boolean =>
  properties.some(({ name, value }) => name === 'cdx:npm:package:development' && value === 'true');

/** Facts about the release that npm does not know. */
export interface SbomFacts {
  readonly name: string;
  /** Text of package-lock.json. */
  readonly lockfile: string;
  /** Time of the commit, RFC 3339 in UTC. */
  readonly committedAt: string;
}

/**
 * Returns the output of `npm sbom` without packages for development. Two builds of one commit give the same document: the name is that
 * of the program and not of the folder, the time is that of the commit, and the serial number depends only on the lockfile.
 */
export function toSbom(ofNpm: Sbom, { name, lockfile, committedAt }: SbomFacts): Sbom {
  const components = ofNpm.components.filter((each) => !isForDevelopment(each));
  const kept = new Set([...components.map((each) => each['bom-ref']), ofNpm.metadata.component['bom-ref']]);
  const dependencies = ofNpm.dependencies
    .filter(({ ref }) => kept.has(ref))
    .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.filter((each) => kept.has(each)) }));
  const component = { ...ofNpm.metadata.component, name, type: 'application' };
  return {
    ...ofNpm,
    serialNumber: `urn:uuid:${uuidOf(lockfile)}`,
    metadata: { ...ofNpm.metadata, timestamp: committedAt, component },
    components,
    dependencies,
  };
}

/** Returns a UUID of version 8 (RFC 9562) that depends only on the text. */
export function uuidOf(text: string): string {
  const bytes = createHash('sha256').update(text).digest().subarray(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
