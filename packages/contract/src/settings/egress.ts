import { type HostRule, readHostRule } from '../egress/host-rules.ts';
import { itemsOf, type ReadText } from './setting.ts';

/** The hosts that the operator of a worker allows. */
export type OperatorRules = 'any' | 'none' | readonly HostRule[];

/** Reads `any`, `none` or a list of rules. */
export const egress: ReadText<OperatorRules> = (text) => {
  const items = itemsOf(text);
  const [first] = items;
  if (items.length === 1 && (first === 'any' || first === 'none')) return { value: first };
  const rules: HostRule[] = [];
  const problems: string[] = [];
  for (const item of items) {
    const rule = readHostRule(item);
    if (rule !== undefined) rules.push(rule);
    else
      problems.push(
        `must be any, none, or hosts like example.com and *.example.com:8443; ${JSON.stringify(item)} is not`,
      );
  }
  return problems.length > 0 ? { problem: problems.join('; ') } : { value: rules };
};
