import { RE2JS } from 're2js';
import { z } from 'zod';
import { type OperatorFile, readOperatorFile } from '../../platform/operator-files/read-file.ts';

/** Kinds of texts that rules can check. */
export const textKinds = ['prompt', 'setup_command'] as const;
export type TextKind = (typeof textKinds)[number];

const appliesTo = z
  .array(z.enum(textKinds))
  .min(1)
  .default([...textKinds]);

/**
 * Maximum number of instructions of a compiled pattern. One character with the largest allowed count of repetitions needs about 1,000.
 */
const maxProgramSize = 5_000;

const Rule = z.strictObject({
  name: z.string().trim().min(1).max(100),
  pattern: z.string().min(1).max(1_000),
  applies_to: appliesTo,
  message: z.string().trim().min(1).max(500).optional(),
});

const Classifier = z.strictObject({
  url: z.url({ protocol: /^https?$/, error: 'must be a URL that begins with http:// or https://' }),
  timeout_seconds: z.number().min(0.1).max(30).default(5),
  on_failure: z.enum(['refuse', 'allow']).default('refuse'),
  applies_to: appliesTo,
});

const PolicyFile = z
  .strictObject({ rules: z.array(Rule).max(100).default([]), classifier: Classifier.optional() })
  .refine(({ rules, classifier }) => rules.length > 0 || classifier !== undefined, {
    error: 'has neither rules nor a classifier',
  });

export type PolicyRule = z.output<typeof Rule>;
export type ClassifierConfig = z.output<typeof Classifier>;
export type PolicyFile = z.output<typeof PolicyFile>;

/** Returns the reason why a pattern cannot be used; null if it can. */
function problemOf(pattern: string): string | null {
  try {
    const size = RE2JS.compile(pattern).programSize();
    return size > maxProgramSize
      ? `compiles to ${size} instructions, and ${maxProgramSize} are accepted; write a shorter repetition`
      : null;
  } catch (error) {
    return `is not a pattern of RE2: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** Reads the file of RUNYARD_CONTENT_POLICY_FILE. Each problem contains the line and the fault. */
export async function readPolicyFile(file: string): Promise<OperatorFile<PolicyFile>> {
  const setting = 'RUNYARD_CONTENT_POLICY_FILE';
  const read = await readOperatorFile(setting, file, PolicyFile);
  if (!read.ok) return read;
  const problems = read.value.rules.flatMap(({ pattern }, index) => {
    const problem = problemOf(pattern);
    return problem === null ? [] : [`${setting}: ${read.lineOf(['rules', index, 'pattern'])}: ${problem}`];
  });
  const names = read.value.rules.map(({ name }) => name);
  const twice = names.findIndex((name, index) => names.indexOf(name) !== index);
  if (twice >= 0) problems.push(`${setting}: ${read.lineOf(['rules', twice, 'name'])}: another rule has this name`);
  return problems.length > 0 ? { ok: false, problems } : read;
}
