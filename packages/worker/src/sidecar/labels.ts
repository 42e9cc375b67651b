/** Returns the labels of the sidecar image (github.com/opencontainers/image-spec, "Pre-Defined Annotation Keys"). */
export function sidecarLabels(version: string, source: string | undefined): Record<string, string> {
  const key = (name: string): string => `org.opencontainers.image.${name}`;
  return {
    [key('title')]: 'runyard-agent',
    [key('description')]:
      'Agent of Runyard for oz-agent-worker: content of /agent. The licences of its parts are in /licences.',
    [key('version')]: version,
    // Of the agent, Node, BusyBox, and the C and C++ libraries.
    [key('licenses')]:
      'Apache-2.0 AND MIT AND GPL-2.0-only AND LGPL-2.1-or-later AND GPL-3.0-or-later WITH GCC-exception-3.1',
    ...(source === undefined ? {} : { [key('source')]: source }),
  };
}
