/** Reads the security advisories about the packages of the lockfile. */
import { z } from 'zod';

const Advisory = z.object({ title: z.string(), url: z.string(), severity: z.string(), range: z.string() });

/**
 * The output of `npm audit --json`. `via` contains advisories about the package, and names of other affected packages on which the
 * package depends.
 */
const Audit = z.object({
  vulnerabilities: z.record(z.string(), z.object({ name: z.string(), via: z.array(z.union([z.string(), Advisory])) })),
});

/** The output if the registry returned an error instead of a report. */
const Failure = z.object({ message: z.string() });

export type Advisories =
  | { readonly kind: 'known'; readonly found: readonly { readonly id: string; readonly line: string }[] }
  /** There is no report, because the registry did not answer or has no data about advisories. */
  | { readonly kind: 'unknown'; readonly reason: string };

/** Reads the output of `npm audit --json`. `accepted`: ids of advisories that do not affect Runyard, such as GHSA-xxxx-xxxx-xxxx. */
export function readAdvisories(printed: string, accepted: readonly string[]): Advisories {
  let json: unknown;
  try {
    json = JSON.parse(printed);
  } catch {
    return { kind: 'unknown', reason: 'npm audit printed no JSON' };
  }
  const audit = Audit.safeParse(json);
  if (!audit.success) return { kind: 'unknown', reason: Failure.safeParse(json).data?.message ?? 'npm audit failed' };
  const found = Object.values(audit.data.vulnerabilities).flatMap(({ name, via }) =>
    via.flatMap((each) => {
      if (typeof each === 'string') return [];
      const id = each.url.split('/').at(-1) ?? each.url;
      return accepted.includes(id)
        ? []
        : [{ id, line: `${name} ${each.range}: ${each.severity}: ${each.title} (${each.url})` }];
    }),
  );
  return { kind: 'known', found };
}
