import { maxSkillTextBytes } from '@runyard/contract/limits';
import { parseDocument } from 'yaml';
import { isSkillName } from './spec.ts';

/** The content of a SKILL.md file. */
export interface SkillText {
  readonly name: string;
  readonly description: string;
  /** The text below the front matter. */
  readonly body: string;
}

/**
 * Maximum size of front matter. In 4 KB, deep nesting and long chains of marks take up to 0.1 s to read, measured with yaml 2.9.1. Real
 * front matter has a few hundred bytes.
 */
const maxFrontMatterLength = 4 * 1024;
const maxDescriptionLength = 1024;
const maxCompatibilityLength = 500;

/**
 * Reads a SKILL.md in the Agent Skills format (https://agentskills.io/specification). `folder`: the name of the folder that contains the
 * file; the skill must have this name. null if the file is at the top of the repository. If the file is not valid, returns the fault as a
 * string.
 * Front matter is plain YAML: no other language, tag or alias is accepted. So reading the front matter executes no code, and the result
 * cannot become much larger than the text.
 */
export function parseSkill(bytes: Buffer, folder: string | null): SkillText | string {
  if (bytes.length > maxSkillTextBytes) return `is larger than ${maxSkillTextBytes / 1024} KB`;
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return 'is not UTF-8 text';
  }
  if (text.includes('\0')) return 'has a NUL character';
  const lines = text.split(/\r?\n/);
  const [first = ''] = lines;
  if (first.trimEnd() !== '---')
    return first.startsWith('---')
      ? `begins with ${JSON.stringify(first.slice(0, 40))}: front matter is YAML between two lines of ---, and no other language is read`
      : 'has no front matter: its first line must be ---';
  const end = lines.findIndex((line, index) => index > 0 && line.trimEnd() === '---');
  if (end < 0) return 'has front matter without an end: a second line of --- is missing';
  const frontMatter = lines.slice(1, end).join('\n');
  if (frontMatter.length > maxFrontMatterLength)
    return `has front matter of more than ${maxFrontMatterLength / 1024} KB`;
  const members = readYaml(frontMatter);
  if (typeof members === 'string') return members;
  const fault = faultOf(members, folder);
  if (fault !== undefined) return fault;
  const body = lines
    .slice(end + 1)
    .join('\n')
    .trim();
  return { name: String(members.get('name')), description: String(members.get('description')), body };
}

function readYaml(text: string): Map<unknown, unknown> | string {
  try {
    const document = parseDocument(text, { schema: 'core', customTags: null, logLevel: 'silent', prettyErrors: false });
    const [error] = document.errors;
    const [warning] = document.warnings;
    const fault = error ?? warning;
    // The library reports its own stack overflow as an error of the text.
    if (document.errors.some(({ code }) => code === 'RESOURCE_EXHAUSTION')) return tooDeep;
    // The first line of the front matter is the second line of the file.
    if (fault)
      return `has front matter that is not plain YAML, at line ${lineAt(text, fault.pos[0]) + 1}: ${fault.message}`;
    const value: unknown = document.toJS({ mapAsMap: true, maxAliasCount: 0 });
    return value instanceof Map ? value : 'has front matter that is not a list of names and values';
  } catch (error) {
    // The library throws a ReferenceError for aliases, and a RangeError for endless nesting.
    return error instanceof ReferenceError ? 'has front matter that cannot be read: aliases are not followed' : tooDeep;
  }
}

const tooDeep = 'has front matter that cannot be read: it is nested too deep';

const lineAt = (text: string, position: number): number => text.slice(0, position).split('\n').length;

function faultOf(members: Map<unknown, unknown>, folder: string | null): string | undefined {
  const [name, description, compatibility] = ['name', 'description', 'compatibility'].map((key) => members.get(key));
  if (typeof name !== 'string' || name === '') return 'has no name in its front matter';
  if (!isSkillName(name))
    return `has the name ${JSON.stringify(name.slice(0, 80))}: a name has 1 to 64 characters of [a-z0-9-], does not begin or end with a hyphen, and has no two hyphens in a row`;
  if (folder !== null && name !== folder)
    return `has the name ${name}, and its folder ${folder}: they must be the same`;
  if (typeof description !== 'string' || description.trim() === '') return 'has no description in its front matter';
  if (description.length > maxDescriptionLength)
    return `has a description of more than ${maxDescriptionLength} characters`;
  // Check the values too: escapes such as "\0" can produce characters that the file itself may not contain, and that the database cannot
  // store.
  if (description.includes('\0') || !description.isWellFormed())
    return 'has a description with a NUL character or half of a surrogate pair';
  if (compatibility !== undefined && typeof compatibility !== 'string')
    return 'has a member compatibility that is not text';
  if (typeof compatibility === 'string' && compatibility.length > maxCompatibilityLength)
    return `has a member compatibility of more than ${maxCompatibilityLength} characters`;
  return undefined;
}
