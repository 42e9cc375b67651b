/** Replaces the variables in the YAML of a definition by their values. */
import type { DefinitionVariables, VariableValue } from '@runyard/contract/factories/definition-variables';
import { type Faults, start } from '@runyard/contract/factories/files/faults';
import { type VariablesFile, variableName } from '@runyard/contract/factories/files/variables-file';
import { makeSpelling } from '@runyard/contract/wire/spelling';
import type { Located } from './read-yaml.ts';

const variablesPath = 'variables.yaml';

/**
 * The values for the variables of a definition. `given`: each of them must be declared. `kept`: values that an earlier apply was given;
 * those that are not declared any more are ignored.
 */
export interface GivenVariables {
  readonly given?: DefinitionVariables | undefined;
  readonly kept?: DefinitionVariables | undefined;
}

/**
 * Returns the value of each declared variable. Adds a fault for each variable without a value, each value of another type, and each given
 * value that no variable is declared for. A text is converted to the declared type.
 */
export function valuesOfVariables(
  { variables: declared }: VariablesFile,
  { given = {}, kept = {} }: GivenVariables,
  faults: Faults,
): DefinitionVariables {
  const spelling = makeSpelling(Object.keys(declared));
  for (const name of Object.keys(given))
    if (!Object.hasOwn(declared, name)) {
      const suggestion = spelling.suggest(name);
      const hint = suggestion ? `; did you mean ${suggestion}?` : '';
      faults.add(
        variablesPath,
        start,
        `does not declare the variable ${name}, which has a value${hint}`,
        suggestion,
        'FF_INVALID_REFERENCE',
      );
    }
  const values = Object.entries(declared).flatMap(([name, declaration]): [string, VariableValue][] => {
    const value = own(given, name) ?? own(kept, name) ?? declaration.default;
    const type = declaration.type ?? typeof (declaration.default ?? '');
    const converted = value === undefined ? undefined : toType(value, type);
    if (converted !== undefined) return [[name, converted]];
    const message =
      value === undefined
        ? `the variable ${name} has no default and no value; give one with --var ${name}=VALUE (\`variables\` in the API)`
        : `the value of the variable ${name} must be a ${type}`;
    faults.add(variablesPath, start, message);
    return [];
  });
  return Object.fromEntries(values);
}

const own = (values: DefinitionVariables, name: string): VariableValue | undefined =>
  Object.hasOwn(values, name) ? values[name] : undefined;

function toType(value: VariableValue, type: string): VariableValue | undefined {
  if (typeof value === type) return value;
  if (typeof value !== 'string') return undefined;
  if (type === 'boolean') return value === 'true' ? true : value === 'false' ? false : undefined;
  return type === 'number' && /^-?\d{1,15}(\.\d{1,15})?$/.test(value) ? Number(value) : undefined;
}

const reference = new RegExp(`^\\$\\{\\{ *variables\\.(${variableName}) *\\}\\}$`);
const anyReference = /\$\{\{\s*variables\./;
/**
 * Keys whose values are never variables. The person who applies a definition may not be its author, and must see in the files which secrets
 * runs get.
 */
const fixedKeys = new Set(['secrets', 'secretName', 'auth', 'schemaVersion']);

/**
 * Returns a file whose scalars that are references, such as `\${{ variables.model }}`, are replaced by values. The values are not parsed
 * as YAML, so they add no keys, lists or anchors. Adds a fault for each reference that cannot be replaced.
 */
export function withVariables(
  file: string,
  located: Located,
  values: DefinitionVariables | undefined,
  faults: Faults,
): Located {
  const replace = (value: unknown, path: readonly (string | number)[]): unknown => {
    if (Array.isArray(value)) return value.map((each, index) => replace(each, [...path, index]));
    if (typeof value === 'object' && value !== null)
      return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, replace(each, [...path, key])]));
    if (typeof value !== 'string' || !anyReference.test(value)) return value;
    const name = reference.exec(value)?.[1];
    const fault = faultOf(name, path, values);
    if (fault !== undefined) faults.add(file, located.valueAt(path), fault, undefined, 'FF_INVALID_REFERENCE');
    return name === undefined ? value : (own(values ?? {}, name) ?? value);
  };
  return { ...located, value: replace(located.value, []) };
}

function faultOf(
  name: string | undefined,
  path: readonly (string | number)[],
  values: DefinitionVariables | undefined,
): string | undefined {
  if (name === undefined)
    return `a variable is a whole value, such as \${{ variables.name }}, and never a part of a text`;
  const fixed = path.find((key) => fixedKeys.has(String(key)));
  if (fixed !== undefined) return `${fixed} takes no variables; write the value into the file`;
  return values && Object.hasOwn(values, name)
    ? undefined
    : `there is no variable ${name} in variables.yaml, where each variable is declared`;
}
