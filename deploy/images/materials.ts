/** The software bill of materials of an image. It lists the image's Debian packages, npm packages, and Node. */
import { readFileSync } from 'node:fs';
import { uuidOf } from '../../test/release/sbom.ts';
import type { Image } from './images.ts';

/** Returns the document in the format CycloneDX 1.5 (https://cyclonedx.org/docs/1.5/json/). Equal arguments give an equal document. */
export function materialsOf({ kind, debian, npm }: Image, version: string, digest: string): object {
  const distribution = /^VERSION_ID="?([\d.]+)/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? '';
  const component = (purl: string, more: object) => ({ type: 'library', 'bom-ref': purl, purl, ...more });
  const seen = new Set<string>();
  const components = [
    component(`pkg:generic/node@${process.versions.node}`, { name: 'node', version: process.versions.node }),
    ...debian.map((each) =>
      component(
        `pkg:deb/debian/${encodeURIComponent(each.name)}@${encodeURIComponent(each.version)}?arch=${each.architecture}&distro=debian-${distribution}`,
        { name: each.name, version: each.version },
      ),
    ),
    ...npm.map(({ name, version: of, license }) =>
      component(`pkg:npm/${name.replace('@', '%40')}@${of}`, {
        name,
        version: of,
        ...(license === undefined ? {} : { licenses: [{ expression: license }] }),
      }),
    ),
  ].filter(({ purl }) => !seen.has(purl) && seen.add(purl));
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    serialNumber: `urn:uuid:${uuidOf(digest)}`,
    version: 1,
    metadata: {
      component: {
        type: 'container',
        'bom-ref': `runyard-${kind}`,
        name: `runyard-${kind}`,
        version,
        hashes: [{ alg: 'SHA-256', content: digest.replace('sha256:', '') }],
      },
    },
    components,
  };
}
