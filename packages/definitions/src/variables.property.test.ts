// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of definition files have this form
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { foreman } from '../test/definition-files.ts';
import { readDefinition } from './read-definition.ts';

type Value = string | number | boolean;
type Values = Readonly<Record<string, Value>>;

/** Returns a generator that makes `unusual` in about one of 20 cases. */
const mostly = <T>(usual: fc.Arbitrary<T>, unusual: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 19, arbitrary: usual }, { weight: 1, arbitrary: unusual });

const names = ['a', 'B', 'cpus', 'constructor', 'toString'];
const otherNames = fc.constantFrom('api_key', 'x-1', '1', 'none');
/** Texts that a reader of YAML could interpret wrongly. */
const oneLine = fc.oneof(
  fc.constantFrom('a: b', '&a x', '*a', '- x', '{k: v}', '[1]', '# c', '| x', '<<: *a', '"', "'", 'null', '012'),
  fc.constantFrom('true', '7', '1e3', '.inf', '__proto__: {x: 1}', 'ü 😀'),
  fc.stringMatching(/^[^\p{Cc}$]{1,12}$/u),
);
const value = (type: string): fc.Arbitrary<Value> => {
  const usual: Readonly<Record<string, fc.Arbitrary<Value>>> = {
    number: fc.oneof(fc.integer({ min: 1, max: 8 }), fc.constant('4')),
    boolean: fc.oneof(fc.boolean(), fc.constant('true')),
  };
  const unusual = fc.constantFrom<Value>('', 'x\ny: 1', 'x\u2028y', 'many', Number.NaN, -0, 1e300, true, 7);
  return mostly(usual[type] ?? oneLine, unusual);
};
const declaration = fc.constantFrom('string', 'number', 'boolean').chain((type) =>
  fc.record(
    {
      type: mostly(fc.constant(type), fc.constantFrom('list', 'number')),
      default: value(type),
      description: oneLine,
    },
    { requiredKeys: ['type', ...(type === 'string' ? [] : ['default' as const])] },
  ),
);
type Declarations = Readonly<Record<string, { readonly type: string; readonly default?: Value }>>;
const dictionary = <T>(keys: fc.Arbitrary<string>, each: fc.Arbitrary<T>) =>
  fc.dictionary(keys, each, { maxKeys: 4, noNullPrototype: true });

/** A place of a file: the text in it, and the variable that is the whole text. */
interface Place {
  readonly text: unknown;
  readonly variable?: string;
  /** Whether the text contains a reference, but is more than that. */
  readonly isPart?: boolean;
}
const place = (plain: unknown, declared: readonly string[]): fc.Arbitrary<Place> =>
  mostly<Place>(
    fc.oneof(
      fc.constant({ text: plain }),
      ...declared.map((variable) =>
        fc.constantFrom(['', ''], [' ', ' '], ['  ', '']).map(([before, after]) => ({
          text: `\${{${before}variables.${variable}${after}}}`,
          variable,
        })),
      ),
    ),
    fc.oneof(
      fc.constant({ text: '${{ variables.none }}', variable: 'none' }),
      fc
        .constantFrom(
          'x ${{ variables.a }}',
          '${{ variables.a }}${{ variables.B }}',
          '${{ variables. }}',
          '${{variables.a',
        )
        .map((text) => ({ text, isPart: true })),
    ),
  );

/** Returns the files of a definition with these five values in them. JSON is YAML, so each value has a line of its own. */
function filesWith(values: readonly unknown[], declared?: object): Record<string, string> {
  const json = (file: object) => JSON.stringify(file, null, 1);
  const [description, workerHost, about, setupCommand, vcpus] = values;
  return {
    'factory.yaml': json({
      schemaVersion: 'v1alpha1',
      name: 'demo',
      description,
      repositories: [{ owner: 'acme', name: 'site' }],
      agentDefaults: { model: 'auto', workerHost },
    }),
    'agents/foreman/agent.md': foreman,
    'environments/e.yaml': json({ description: about, setup_commands: ['true', setupCommand] }),
    'runners/r.yaml': json({
      instanceShape: { vcpus, memoryGb: 4 },
      platform: { linux: { dockerImage: 'node:24' } },
    }),
    ...(declared ? { 'variables.yaml': json({ variables: declared }) } : {}),
  };
}

const input = dictionary(mostly(fc.constantFrom(...names), otherNames), declaration).chain((declared) => {
  const known = Object.keys(declared);
  const numbers = known.filter((each) => declared[each]?.type === 'number');
  const given = known.map((each) => fc.tuple(fc.constant(each), fc.option(value(declared[each]?.type ?? 'string'))));
  return fc.record({
    declared: fc.constant<Declarations>(declared),
    given: fc
      .tuple(fc.tuple(...given), mostly(fc.constant({}), dictionary(otherNames, oneLine)))
      .map(([own, more]): Values => ({ ...more, ...Object.fromEntries(own.filter((each) => each[1] !== null)) })),
    kept: dictionary(fc.constantFrom(...names, 'gone'), fc.oneof(oneLine, value('number'))),
    places: fc.tuple(
      place('plain', known),
      place('plain', known),
      place('plain', known),
      place('plain', known),
      place(2, numbers),
    ),
  });
});

const read = (files: Readonly<Record<string, string>>, values: { given?: Values; kept?: Values } = {}) =>
  readDefinition(
    Object.entries(files).map(([path, content]) => ({ path, content })),
    values,
  );

test('a definition is the same as with the values of its variables in its files, and each fault names its place', () => {
  let accepted = 0;
  fc.assert(
    fc.property(input, ({ declared, given, kept, places }) => {
      const texts = places.map(({ text }) => text);
      const files = filesWith(texts, declared);
      const found = read(files, { given, kept });
      const wrong = places.filter(({ variable, isPart }) => isPart || (variable && !Object.hasOwn(declared, variable)));
      if (found.ok) {
        accepted += 1;
        expect(wrong).toEqual([]);
        expect(Object.keys(found.variables).toSorted()).toEqual(Object.keys(declared).toSorted());
        const written = read(
          filesWith(places.map(({ variable, text }) => (variable ? found.variables[variable] : text))),
        );
        expect(written).toMatchObject({ ok: true });
        expect(written.ok && written.definition).toEqual(found.definition);
        return;
      }
      const linesOf = (file: string) => files[file]?.split('\n') ?? [];
      for (const { file, line, column } of found.faults) {
        expect(Object.keys(files)).toContain(file);
        expect(linesOf(file)[line - 1]?.length).toBeGreaterThanOrEqual(column - 1);
      }
      // Faults of the variables themselves come alone. All others are at the lines of the texts.
      if (found.faults.some(({ file }) => file === 'variables.yaml')) return;
      const lines = found.faults.map(({ file, line }) => linesOf(file)[line - 1] ?? '');
      for (const { text } of wrong) expect(lines.join('\n')).toContain(JSON.stringify(text));
      for (const line of lines) expect(line).toContain('variables.');
    }),
    { numRuns: 300 },
  );
  expect(accepted).toBeGreaterThan(20);
});
