/** Names of container images, as github.com/distribution/reference defines them. */

export interface ImageName {
  /** The registry, such as `docker.io` or `127.0.0.1:5000`. */
  readonly registry: string;
  /** The whole name with the registry and the tag or digest. Requests to the container engine use this name. */
  readonly full: string;
}

export type ReadImageName = { ok: true; name: ImageName } | { ok: false; problem: string };

const longestName = 500;
const part = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$/;
/** Matches the registry in the name of an image. */
export const registryName =
  /^(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[a-fA-F0-9:]+\])(?::[0-9]{1,5})?$/;
const tagName = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/;
const digestName = /^sha256:[a-f0-9]{64}$/;

/**
 * Reads a name such as `node:24`, `ghcr.io/team/image@sha256:…`. A name without a registry means Docker Hub, and a name without a tag means
 * `latest`.
 */
export function readImageName(given: string): ReadImageName {
  const quoted = JSON.stringify(given.length > 200 ? `${given.slice(0, 200)}…` : given);
  const problem = (why: string): ReadImageName => ({
    ok: false,
    problem: `${quoted} is not the name of a container image: ${why}. Write it like \`node:24\` or \`ghcr.io/team/image:tag\``,
  });
  if (given.length > longestName) return problem(`it has more than ${longestName} characters`);
  const [beforeDigest = '', digest, ...more] = given.split('@');
  if (more.length > 0 || (digest !== undefined && !digestName.test(digest))) return problem('its digest is wrong');
  const first = beforeDigest.split('/', 1)[0] ?? '';
  const hasRegistry = beforeDigest.includes('/') && (/[.:]/.test(first) || first === 'localhost');
  const registry = hasRegistry ? first : 'docker.io';
  if (!registryName.test(registry)) return problem('its registry is wrong');
  const rest = hasRegistry ? beforeDigest.slice(first.length + 1) : beforeDigest;
  const colon = rest.lastIndexOf(':');
  const path = colon < 0 ? rest : rest.slice(0, colon);
  const tag = colon < 0 ? undefined : rest.slice(colon + 1);
  if (tag !== undefined && !tagName.test(tag)) return problem('its tag is wrong');
  if (!path.split('/').every((each) => part.test(each)))
    return problem(
      'its parts between `/` must consist of lower-case letters and digits, with single `.`, `_` or `-` between them',
    );
  // Refuse such a name, because the container engine would take it for the id of an image.
  if (!hasRegistry && tag === undefined && digest === undefined && /^[a-f0-9]{64}$/.test(path))
    return problem('it is an id');
  const whole = !hasRegistry && !path.includes('/') ? `library/${path}` : path;
  const suffix = digest === undefined ? `:${tag ?? 'latest'}` : `@${digest}`;
  return { ok: true, name: { registry: registry.toLowerCase(), full: `${registry}/${whole}${suffix}` } };
}
