import type { z } from 'zod';
import { type HostRule, readHostRule } from '../egress/host-rules.ts';
import { list } from './setting.ts';

/** The hosts that the operator of a worker allows. */
export type OperatorRules = 'any' | 'none' | readonly HostRule[];

/** Reads `any`, `none` or a list of rules. */
export const egress: z.ZodType<OperatorRules, string> = list.transform((items, context): OperatorRules => {
  const [first] = items;
  if (items.length === 1 && (first === 'any' || first === 'none')) return first;
  return items.flatMap((item) => {
    const rule = readHostRule(item);
    if (rule !== undefined) return [rule];
    context.addIssue({
      code: 'custom',
      message: `must be any, none, or hosts like example.com and *.example.com:8443; ${JSON.stringify(item)} is not`,
    });
    return [];
  });
});
