/** The parts of the rows in the table of all limits. */
import { serviceSettings } from '../settings/service.ts';

/** A row of the table. */
export interface Limit {
  readonly of: string;
  readonly most: string;
  /** The answer of the service to a request above the limit, or the effect on the run. */
  readonly above: string;
}

type Megabytes = {
  [N in keyof typeof serviceSettings]: N extends `${string}_MB` ? N : never;
}[keyof typeof serviceSettings];

/** Returns the name and the default of the setting that defines a limit. */
export const setting = (name: Megabytes): string => `\`${name}\` (${serviceSettings[name].default} MB)`;

/** Returns bytes in whole MB or KB. */
export function size(bytes: number): string {
  const mb = bytes / 1024 / 1024;
  return mb >= 1 ? `${mb} MB` : `${bytes / 1024} KB`;
}

export const invalid = '400';
export const tooLarge = '413';
