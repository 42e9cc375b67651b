/** The type of a setting, and the kinds of values that several settings share. */
import { z } from 'zod';

export interface Setting<T> {
  readonly schema: z.ZodType<T, string>;
  /** As a user would write it; absent: no default. */
  readonly default?: string;
  readonly description: string;
  readonly usedBy: readonly ('service' | 'worker' | 'cli')[];
  /** True: never printed. */
  readonly secret?: true;
}

/** A URL without its trailing slash. */
export const httpUrl = z
  .string()
  .refine((text) => /^https?:$/.test(URL.parse(text)?.protocol ?? ''), { error: 'must be an http:// or https:// URL' })
  .transform((text) => text.replace(/\/+$/, ''));

/** A whole number between `min` and `max`, both included. */
export const whole = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d+$/, { error: 'must be a whole number' })
    .transform(Number)
    .refine((value) => value >= min && value <= max, { error: `must be between ${min} and ${max}` });

/** Items between commas; blank ones count for nothing. */
export const list = z.string().transform((text) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter(Boolean),
);

/** A secret of any form. */
export const secret = z.string().min(1, { error: 'must not be empty' });

/** A file. The programs of an installation do not share a working directory. */
export const absolutePath = z.string().regex(/^\//, { error: 'must be an absolute path' });

/** Networks that are not public, comma-separated. */
export const privateNetworks = list.pipe(
  z.array(z.union([z.cidrv4(), z.cidrv6()], { error: 'must be networks like 10.0.0.0/8 or fd00::/8' })),
);
