/** The values of variables of a definition, on the command line. */
import { collect } from '../../input/options.ts';
import { pairParser } from '../../input/parse-pair.ts';

/** The option `--var`, which can be repeated. */
export const variableOption = [
  '--var <name=value>',
  'value of a variable that variables.yaml declares; repeat it for more. Others keep their values, or have their defaults',
  collect,
] as const;

/** Returns the values by name. @throws Failure if a text is not `name=value` */
export const variablesOf = (pairs: readonly string[] = []): Record<string, string> =>
  Object.fromEntries(pairs.map(pairParser('--var')));
